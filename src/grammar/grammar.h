// Compiled constraints. Compiling takes milliseconds for ordinary ones; the result is immutable and shared by
// any number of matchers in any threads. Everything here throws RefusedError for a constraint that is wrong,
// too large, or could not be enforced to the letter.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton/machine.h"
#include "grammar/refusal.h"
#include "grammar/rules.h"
#include "text/tokenizer.h"

namespace inferno::grammar {

struct CompileOptions {
  bool compact_whitespace = false;  // no blanks in JSON
  std::stop_token cancel = {};      // Error{invalid_request} soon after a stop is requested
  Limits limits = {};
};

class Grammar {
 public:
  Grammar(Rules rules, Part root, Budget& budget);
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  const Machine& machine() const { return machine_; }
  // For embedding into a larger constraint.
  const Rules& rules() const { return rules_; }
  Part root() const { return root_; }
  std::size_t bytes() const { return machine_.bytes(); }
  // What was accepted without being enforced because the standard says that it is a note, such as an
  // unknown format.
  const std::vector<std::string>& notes() const { return notes_; }
  void add_notes(std::vector<std::string> notes) { notes_ = std::move(notes); }

 private:
  Rules rules_;
  Part root_;
  Machine machine_;
  std::vector<std::string> notes_;
};

std::shared_ptr<const Grammar> compile(Rules rules, Part root, const CompileOptions& options = {});

// A JSON schema, drafts 4 to 2020-12 (docs/constrained.md).
std::shared_ptr<const Grammar> compile_schema(std::string_view json, const CompileOptions& options = {});
// Any JSON object.
std::shared_ptr<const Grammar> compile_json_object(const CompileOptions& options = {});
// The whole text must match.
std::shared_ptr<const Grammar> compile_regex(std::string_view expression, const CompileOptions& options = {});
// GBNF as llama.cpp reads it. Rules that name tokens need the tokenizer.
std::shared_ptr<const Grammar> compile_gbnf(std::string_view text, const Tokenizer* tokenizer = nullptr,
                                            const CompileOptions& options = {});
std::shared_ptr<const Grammar> compile_choices(std::span<const std::string> choices,
                                               const CompileOptions& options = {});

}  // namespace inferno::grammar
