#include "checkpoint/safetensors/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "checkpoint/json_events.h"

namespace inferno {
namespace {

constexpr int max_depth = 16;
constexpr std::size_t max_tensors = 1u << 20;

class IndexReader final : public JsonEvents {
 public:
  explicit IndexReader(std::string_view origin) : origin_(origin) {}

  void start_object() override {
    ++depth_;
    if (in_map() && depth_ > 2) malformed();
  }

  void key(std::string name) override {
    if (depth_ == 1) {
      section_ = std::move(name);
      if (section_ == "weight_map" && std::exchange(has_map, true)) {
        fail(ErrorKind::corrupt, fmt::format("{}: \"weight_map\" appears twice", origin_));
      }
    } else if (in_map()) {
      tensor_ = std::move(name);
    }
  }

  void end_object() override { --depth_; }

  void start_array() override {
    if (depth_ == 0 || in_map()) malformed();
    ++depth_;
  }

  void end_array() override { --depth_; }

  void scalar(JsonScalar value) override {
    if (depth_ == 0) malformed();
    if (!in_map()) return;  // metadata
    const auto* shard = std::get_if<std::string>(&value);
    if (depth_ != 2 || shard == nullptr) malformed();
    if (!is_plain_file_name(*shard) || !shard->ends_with(".safetensors")) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: expected the name of a .safetensors file in this directory for {}, found {}",
                       origin_, quote(tensor_), quote(*shard)),
           {.why = "a name that leads elsewhere could make Inferno read any file on this machine",
            .next = {}});
    }
    if (!shards.emplace(tensor_, *shard).second) {
      fail(ErrorKind::corrupt, fmt::format("{}: tensor {} appears twice", origin_, quote(tensor_)));
    }
    if (shards.size() > max_tensors) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected at most {} tensors", origin_, max_tensors));
    }
  }

  std::map<std::string, std::string> shards;
  bool has_map = false;

 private:
  bool in_map() const { return section_ == "weight_map"; }

  [[noreturn]] void malformed() const {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected an object whose \"weight_map\" maps tensor names to file names", origin_));
  }

  std::string_view origin_;
  int depth_ = 0;
  std::string section_, tensor_;
};

constexpr std::uint64_t max_index = 128u << 20;
constexpr std::string_view single_file = "model.safetensors";
constexpr std::string_view index_file = "model.safetensors.index.json";
constexpr std::size_t max_shown_names = 8;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max_shown_names); ++i) {
    text += (i == 0 ? "" : ", ") + quote(names[i]);
  }
  return names.size() > max_shown_names ? fmt::format("{} and {} more", text, names.size() - max_shown_names)
                                        : text;
}

std::vector<std::string> file_names(const std::filesystem::path& directory) {
  std::error_code problem;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(directory, problem), end; !problem && at != end;
       at.increment(problem)) {
    names.push_back(at->path().filename().string());
  }
  if (problem) fail(ErrorKind::io, fmt::format("{}: cannot list: {}", directory.string(), problem.message()));
  std::sort(names.begin(), names.end());
  return names;
}

// "model" of "model-00001-of-00006.safetensors".
std::optional<std::string_view> shard_stem(std::string_view name) {
  constexpr std::string_view pattern = "-00000-of-00000.safetensors";
  if (name.size() <= pattern.size()) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - pattern.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool digit = tail[i] >= '0' && tail[i] <= '9';
    if (pattern[i] == '0' ? !digit : tail[i] != pattern[i]) return std::nullopt;
  }
  return name.substr(0, name.size() - pattern.size());
}

SafetensorsFiles from_index(const std::filesystem::path& directory, const std::vector<std::string>& present) {
  const std::string origin = (directory / index_file).string();
  SafetensorsFiles files;
  files.index = parse_safetensors_index(read_file(directory / index_file, max_index), origin);
  std::set<std::string, std::less<>> named;
  for (const auto& [tensor, shard] : files.index) named.insert(shard);
  files.names.assign(named.begin(), named.end());

  std::vector<std::string> missing;
  std::set_difference(named.begin(), named.end(), present.begin(), present.end(),
                      std::back_inserter(missing));
  if (!missing.empty()) {
    fail(ErrorKind::not_found,
         fmt::format("{}: {} of {} files are missing: {}", origin, missing.size(), named.size(),
                     listed(missing)),
         {.why = "the download is incomplete", .next = "download the model again"});
  }
  std::set<std::string_view> stems;
  for (const std::string& name : named) {
    if (const auto stem = shard_stem(name)) stems.insert(*stem);
  }
  std::vector<std::string> extra;
  for (const std::string& name : present) {
    const auto stem = shard_stem(name);
    const bool rival = name == single_file || (stem && stems.contains(*stem));
    if (rival && !named.contains(name)) extra.push_back(name);
  }
  if (!extra.empty()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: does not list {}, which is in the same directory", origin, listed(extra)),
         {.why = "the directory may mix two versions of the model",
          .next = "remove the extra files, or download the model again"});
  }
  return files;
}

[[noreturn]] void refuse_directory(const std::filesystem::path& directory,
                                   const std::vector<std::string>& present) {
  std::vector<std::string> weights, pickles;
  for (const std::string& name : present) {
    if (name.ends_with(".safetensors")) weights.push_back(name);
    if (name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt")) pickles.push_back(name);
  }
  if (!weights.empty()) {
    fail(ErrorKind::not_found,
         fmt::format("{}: expected {} or {}, found only {}", directory.string(), single_file, index_file,
                     listed(weights)),
         {.why = "without its index a sharded model may be incomplete", .next = "download the missing file"});
  }
  if (!pickles.empty()) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: expected safetensors, found only {}", directory.string(), listed(pickles)),
         {.why = "these are pickle files, which run code when loaded; Inferno never reads them",
          .next = "use a repository or revision with .safetensors files, or a GGUF file of this model"});
  }
  fail(ErrorKind::not_found,
       fmt::format("{}: expected {} or {}, found no weights", directory.string(), single_file, index_file),
       {.why = {}, .next = "download the model again"});
}

}  // namespace

std::map<std::string, std::string> parse_safetensors_index(std::string_view json, std::string_view origin) {
  IndexReader reader(origin);
  parse_json(json, origin, max_depth, reader);
  if (reader.shards.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected a \"weight_map\" with tensors in it", origin));
  }
  return std::move(reader.shards);
}

SafetensorsFiles list_safetensors(const std::filesystem::path& directory) {
  const std::vector<std::string> present = file_names(directory);
  const auto has = [&](std::string_view name) {
    return std::binary_search(present.begin(), present.end(), name);
  };
  if (has(index_file)) return from_index(directory, present);
  if (has(single_file)) return {.names = {std::string(single_file)}, .index = {}};
  refuse_directory(directory, present);
}

bool has_safetensors(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / single_file, ignored) ||
         std::filesystem::exists(directory / index_file, ignored);
}

}  // namespace inferno
