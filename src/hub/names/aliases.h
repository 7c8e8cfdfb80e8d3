// Short names of models: `llama3.2:1b`, `qwen3`. The table is names/aliases.txt, which is part of the
// program; users add their own in their configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::hub {

struct Alias {
  std::string name;       // lower case
  std::string original;   // org/name
  std::string quantized;  // org/name:QUANT, open to everyone; empty if there is none
  std::uint64_t original_bytes = 0, quantized_bytes = 0;  // approximately; 0: unknown
  std::uint64_t token_bytes = 0;  // what the original of a mixture reads for one token; 0: everything
  bool is_gated = false;          // the original needs an account and a license
  bool is_chat = true;            // otherwise it only continues texts
};

std::span<const Alias> aliases();

// Adds names, which replace those of the table. Called once at the start of the program: no other thread may
// use names meanwhile, and pointers to aliases become invalid.
void add_aliases(std::vector<Alias> own);

// nullptr if `text` is not one. Case does not matter, and a tag :latest may be omitted.
const Alias* find_alias(std::string_view text);

// Aliases that begin with `text`, for one that names several: "llama".
std::vector<const Alias*> aliases_like(std::string_view text);

struct AliasChoice {
  std::string model;  // the original or the quantized model
  std::uint64_t bytes = 0;
};

// The original, or the quantized model if the original is gated or takes more than three quarters of
// `memory`. 0: the memory is unknown, and only gated originals are replaced.
AliasChoice choose(const Alias& alias, std::uint64_t memory);

// The family of models that `text` names, without a tag, if it is well known and does not run in Inferno;
// else empty.
std::string unsupported_family(std::string_view text);

// The names that a table defines. Error{internal} for a line of another form, which a test finds.
std::vector<Alias> read_aliases(std::string_view table);

}  // namespace inferno::hub
