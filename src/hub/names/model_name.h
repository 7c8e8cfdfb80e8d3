// What a user may call a model, in every form seen in the wild, as one struct:
//
//   org/name   org/name@revision   org/name:QUANT   org/name@revision:QUANT   name   name:TAG
//   hf.co/org/name[:QUANT]   hf://[models/]org/name[@revision][/path]
//   https://huggingface.co/org/name[/tree/revision][/blob/revision/path][/resolve/revision/path]
//   a directory   a .gguf file   and the aliases: gpt-oss:20b is openai/gpt-oss-20b
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace inferno::hub {

struct ModelName {
  std::string organisation;  // empty for the few models without one, and for names yet to be looked up
  std::string name;
  std::string revision;  // branch, tag, "refs/pr/1" or commit; empty means main
  std::string quant;     // of a GGUF file, as it was written; empty means the default
  std::string path;      // one file of the model; empty means what select_files() chooses

  std::string id() const;    // "org/name", as the hub calls it
  std::string text() const;  // the shortest form that parses to the same: "org/name@revision:QUANT"
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }

  friend bool operator==(const ModelName&, const ModelName&) = default;
};

using ParsedName = std::variant<ModelName, std::filesystem::path>;

// A path is what begins with '/', './', '../' or '~', ends with '/' or ".gguf", or has more than one '/' and
// no scheme; whether anything is there is not asked, and a caller that takes files looks for one first.
// Aliases are replaced. `endpoint` is the hub whose addresses are understood beside huggingface.co's.
// Error{invalid_request} with the part that is wrong; no name that is returned can lead out of a folder.
ParsedName parse_model_name(std::string_view text, std::string_view endpoint = "https://huggingface.co");

// The same, where only a model on the hub will do: a path is an Error{invalid_request}.
ModelName parse_hub_name(std::string_view text, std::string_view endpoint = "https://huggingface.co");

struct Alias {
  std::string_view name, model;
};
std::span<const Alias> aliases();

}  // namespace inferno::hub
