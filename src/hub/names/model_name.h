// The name of a model, in every form that users write, as one struct:
//
//   org/name   org/name@revision   org/name:QUANT   org/name@revision:QUANT   name   name:TAG
//   hf.co/org/name[:QUANT]   hf://[models/]org/name[@revision][/path]
//   https://huggingface.co/org/name[/tree/revision][/blob/revision/path][/resolve/revision/path]
//   a directory   a .gguf file   and the aliases: gpt-oss:20b is openai/gpt-oss-20b
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

namespace inferno::hub {

struct ModelName {
  std::string organization;  // empty for the few models without one, and for names not yet resolved
  std::string name;
  std::string revision;  // branch, tag, "refs/pr/1" or commit; empty means main
  std::string quant;     // of a GGUF file, as written by the user; empty means the default
  std::string path;      // one file of the model; empty: select_files() chooses

  std::string id() const;    // "org/name", the hub's id
  std::string text() const;  // the shortest form that parses to the same name: "org/name@revision:QUANT"
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }

  friend bool operator==(const ModelName&, const ModelName&) = default;
};

using ParsedName = std::variant<ModelName, std::filesystem::path>;

// A path begins with '/', './', '../' or '~', ends with '/' or ".gguf", or has more than one '/' and no
// scheme. The file system is not consulted; a caller that accepts files looks for one first. Aliases
// (aliases.h) are replaced by their originals. `endpoint` is a hub whose URLs are accepted in addition to
// huggingface.co's. Error{invalid_request} with the invalid part; no returned name can lead out of a folder.
ParsedName parse_model_name(std::string_view text, std::string_view endpoint = "https://huggingface.co");

// The same for a model on the hub: a path is Error{invalid_request}.
ModelName parse_hub_name(std::string_view text, std::string_view endpoint = "https://huggingface.co");

}  // namespace inferno::hub
