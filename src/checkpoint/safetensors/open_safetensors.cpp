#include "checkpoint/safetensors/open_safetensors.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/config_json.h"
#include "checkpoint/safetensors/header.h"
#include "checkpoint/safetensors/mxfp4_pair.h"
#include "checkpoint/safetensors/shards.h"

namespace inferno {
namespace {

constexpr std::string_view blocks_suffix = "_blocks";
constexpr std::string_view scales_suffix = "_scales";

struct Entry {
  std::string file;
  const SafetensorsType* type = nullptr;
  StoredTensor tensor;
};
using Entries = std::map<std::string, Entry, std::less<>>;

// Refuses quantizations that would load as tensors of packed integers. Returns whether the experts are MXFP4.
bool check_quantization(const Config& config) {
  bool quantized = false;
  for (const std::string& key : config.unread()) {
    const bool is_quantization =
        key.starts_with("quantization_config.") || key.starts_with("compression_config.");
    if (is_quantization) config.ignore(key);
    quantized |= is_quantization;
  }
  if (!quantized) return false;
  const std::string method =
      config.text("quantization_config.quant_method", config.text("compression_config.quant_method", ""));
  if (method == "mxfp4") return true;
  fail(ErrorKind::unsupported,
       fmt::format("{}: the weights are quantized with {}, which Inferno does not read", config.origin(),
                   method.empty() ? "an unnamed method" : quote(method)),
       {.why = "gpt-oss's mxfp4 is the only supported quantization in safetensors",
        .next = "use the original bf16 or f16 repository, or a GGUF file of this model"});
}

Entries read_entries(const std::filesystem::path& directory, const SafetensorsFiles& files) {
  Entries entries;
  for (const std::string& name : files.names) {
    const std::string origin = (directory / name).string();
    const std::shared_ptr<const ByteSource> source = open_file(directory / name);
    for (SafetensorsTensor& found : read_safetensors_header(*source, origin)) {
      const auto [place, fresh] = entries.try_emplace(std::move(found.name));
      auto& [tensor_name, entry] = *place;
      if (!fresh) {
        fail(ErrorKind::corrupt,
             fmt::format("{}: tensor {} is also in {}", origin, quote(tensor_name), quote(entry.file)));
      }
      if (const auto at = files.index.find(tensor_name); at != files.index.end() && at->second != name) {
        fail(ErrorKind::corrupt, fmt::format("{}: has tensor {}, which the index places in {}", origin,
                                             quote(tensor_name), quote(at->second)));
      }
      entry = {.file = name,
               .type = found.type,
               .tensor = {.format = found.type->format.value_or(WeightFormat::u8),
                          .shape = std::move(found.shape),
                          .source = source,
                          .offset = found.offset,
                          .bytes = found.bytes}};
    }
  }
  for (const auto& [tensor, shard] : files.index) {
    if (!entries.contains(tensor)) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected tensor {}, which the index lists, but it is missing",
                                           (directory / shard).string(), quote(tensor)));
    }
  }
  return entries;
}

[[noreturn]] void refuse_pair(const std::string& path, const std::string& name, std::string_view problem) {
  fail(ErrorKind::corrupt, fmt::format("{}: the MXFP4 tensor {} {}", path, quote(name), problem));
}

// [experts, rows, groups, 16] codes and [experts, rows, groups] scales make [experts, rows, groups * 32]
// weights.
StoredTensor joined(const StoredTensor& codes, const StoredTensor& scales) {
  StoredTensor result = {.format = WeightFormat::mxfp4,
                         .shape = scales.shape,
                         .source = interleave_mxfp4(codes, scales),
                         .bytes = scales.bytes * sizeof(blocks::Mxfp4),
                         .is_joined = true};
  // No overflow: a file has fewer than 2^59 groups.
  result.shape.back() *= blocks::Mxfp4::elements;
  return result;
}

bool fit_together(const StoredTensor& codes, const StoredTensor& scales) {
  std::vector<std::int64_t> expected = scales.shape;
  expected.push_back(16);
  return !scales.shape.empty() && codes.shape == expected;
}

// `required`: config.json declares MXFP4, so half a pair is an error and not a tensor of bytes.
void join_mxfp4_pairs(Entries& entries, const std::filesystem::path& directory, bool required) {
  std::vector<std::string> stems;
  for (const auto& [name, entry] : entries) {
    if (!entry.type->format.has_value() || entry.tensor.format != WeightFormat::u8) continue;
    for (const std::string_view suffix : {blocks_suffix, scales_suffix}) {
      if (name.ends_with(suffix)) stems.push_back(name.substr(0, name.size() - suffix.size()));
    }
  }
  for (const std::string& stem : stems) {
    const auto codes = entries.find(stem + std::string(blocks_suffix));
    const auto scales = entries.find(stem + std::string(scales_suffix));
    if (codes == entries.end() && scales == entries.end()) continue;  // already joined
    if (codes == entries.end() || scales == entries.end()) {
      const Entry& half = (codes == entries.end() ? scales : codes)->second;
      if (required) refuse_pair((directory / half.file).string(), stem, "lacks its other half");
      continue;
    }
    const std::string path = (directory / codes->second.file).string();
    if (scales->second.type != codes->second.type ||
        !fit_together(codes->second.tensor, scales->second.tensor)) {
      refuse_pair(path, stem,
                  fmt::format("has codes of shape [{}] and scales of shape [{}], which do not fit together",
                              fmt::join(codes->second.tensor.shape, ", "),
                              fmt::join(scales->second.tensor.shape, ", ")));
    }
    Entry entry = {.file = codes->second.file,
                   .type = codes->second.type,
                   .tensor = joined(codes->second.tensor, scales->second.tensor)};
    entries.erase(codes);
    entries.erase(scales);
    if (!entries.emplace(stem, std::move(entry)).second)
      refuse_pair(path, stem, "is also present unquantized");
  }
}

class SafetensorsCheckpoint final : public Checkpoint {
 public:
  SafetensorsCheckpoint(std::filesystem::path directory, Config config)
      : directory_(std::move(directory)), config_(std::move(config)), architecture_(model_type(config_)) {
    const bool mxfp4 = check_quantization(config_);
    entries_ = read_entries(directory_, list_safetensors(directory_));
    join_mxfp4_pairs(entries_, directory_, mxfp4);
  }

  Container container() const override { return Container::safetensors; }
  std::string_view architecture() const override { return architecture_; }
  const Config& config() const override { return config_; }

  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return std::nullopt;
    const Entry& entry = found->second;
    if (!entry.type->format) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: tensor {} has elements of type {}, which cannot be weights",
                       (directory_ / entry.file).string(), quote(name), entry.type->name));
    }
    return entry.tensor;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  static std::string model_type(const Config& config) {
    const std::string type = config.text("model_type", "");
    if (type.empty()) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: expected \"model_type\", which names the architecture", config.origin()));
    }
    return type;
  }

  std::filesystem::path directory_;
  Config config_;
  std::string architecture_;
  Entries entries_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& directory) {
  return std::make_unique<SafetensorsCheckpoint>(directory, read_config(directory / "config.json"));
}

}  // namespace inferno
