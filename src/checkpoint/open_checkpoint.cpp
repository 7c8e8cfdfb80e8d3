#include "checkpoint/open_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf/open_gguf.h"
#include "checkpoint/safetensors/open_safetensors.h"
#include "checkpoint/safetensors/shards.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::unique_ptr<Checkpoint> open_directory(const fs::path& directory,
                                           std::shared_ptr<const GgufMetadata> parsed) {
  const std::vector<std::string> ggufs = gguf_files(directory);
  if (ggufs.empty()) return open_safetensors(directory);
  if (ggufs.size() > 1 || has_safetensors(directory)) {
    std::string list;
    for (const std::string& name : ggufs) list += (list.empty() ? "" : ", ") + quote(name);
    fail(ErrorKind::invalid_request,
         fmt::format("{}: contains more than one model: {}{}", directory.string(), list,
                     has_safetensors(directory) ? " and safetensors" : ""),
         {.why = {}, .next = "name the file"});
  }
  return open_gguf(directory / ggufs.front(), std::move(parsed));
}

// A shard, or the only file of a directory, opens the whole directory.
std::unique_ptr<Checkpoint> open_directory_of(const fs::path& file) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!is_file(directory / "config.json")) {
    fail(ErrorKind::not_found, fmt::format("{}: expected config.json beside it, found none", file.string()),
         {.why = "safetensors hold only weights; config.json says what they mean",
          .next = "put the file into the directory of its model"});
  }
  const std::vector<std::string> used = list_safetensors(directory).names;
  if (std::find(used.begin(), used.end(), file.filename().string()) == used.end()) {
    fail(ErrorKind::invalid_request, fmt::format("{}: not part of the model in its directory", file.string()),
         {.why = {}, .next = "open the directory " + directory.string()});
  }
  return open_safetensors(directory);
}

}  // namespace

std::vector<std::string> gguf_files(const fs::path& directory) {
  std::error_code problem;
  std::vector<std::string> names;
  for (fs::directory_iterator at(directory, problem), end; !problem && at != end; at.increment(problem)) {
    const std::string name = at->path().filename().string();
    const auto split = parse_gguf_split_name(name);
    const bool projector = name.starts_with("mmproj");
    if (name.ends_with(".gguf") && !projector && (!split || split->number == 1)) names.push_back(name);
  }
  if (problem) fail(ErrorKind::io, fmt::format("{}: cannot list: {}", directory.string(), problem.message()));
  std::sort(names.begin(), names.end());
  return names;
}

bool is_gguf_file(const fs::path& path) {
  if (!is_file(path)) return false;
  if (path.extension() == ".gguf") return true;
  std::array<char, 4> magic = {};
  const auto file = open_file(path);
  if (file->size() < magic.size()) return false;
  file->read(0, std::as_writable_bytes(std::span(magic)));
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

void require_model(const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (status.type() == fs::file_type::not_found) {
    fail(ErrorKind::not_found, fmt::format("{}: no such file or directory", path.string()));
  }
  if (problem) fail(ErrorKind::io, fmt::format("{}: cannot be read: {}", path.string(), problem.message()));
  if (fs::is_directory(status)) {
    if (is_file(path / "config.json") || !gguf_files(path).empty()) return;
    fail(ErrorKind::not_found,
         fmt::format("{}: expected a model directory, found neither config.json nor a .gguf file",
                     path.string()),
         {.why = {}, .next = "give a directory with config.json and .safetensors files, or a .gguf file"});
  }
  const std::string extension = path.extension().string();
  if (!fs::is_regular_file(status) || extension == ".safetensors" || is_gguf_file(path)) return;
  if (extension == ".bin" || extension == ".pth" || extension == ".pt") {
    fail(ErrorKind::unsupported,
         fmt::format("{}: expected .safetensors or .gguf, found a pickle file", path.string()),
         {.why = "pickle files run code when loaded; Inferno never reads them",
          .next = "use a repository or revision with .safetensors files, or a GGUF file of this model"});
  }
  fail(ErrorKind::unsupported,
       fmt::format("{}: expected a model directory, a .gguf file or a .safetensors file", path.string()),
       {.why = {}, .next = "give the directory that has the model's config.json, or a .gguf file"});
}

std::unique_ptr<Checkpoint> open_checkpoint(const fs::path& path,
                                            std::shared_ptr<const GgufMetadata> parsed) {
  require_model(path);
  if (fs::is_directory(path)) return open_directory(path, std::move(parsed));
  const bool is_weights = is_file(path) && path.extension() == ".safetensors" && !is_gguf_file(path);
  return is_weights ? open_directory_of(path) : open_gguf(path, std::move(parsed));
}

}  // namespace inferno
