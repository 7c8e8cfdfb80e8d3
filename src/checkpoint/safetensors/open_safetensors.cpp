#include "checkpoint/safetensors/open_safetensors.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/config_json.h"
#include "checkpoint/quantized/quantization_config.h"
#include "checkpoint/quantized/quantized_tensors.h"
#include "checkpoint/safetensors/entries.h"
#include "checkpoint/safetensors/header.h"
#include "checkpoint/safetensors/mxfp4_pair.h"
#include "checkpoint/safetensors/shards.h"

namespace inferno {
namespace {

constexpr std::string_view blocks_suffix = "_blocks";
constexpr std::string_view scales_suffix = "_scales";

using Entry = SafetensorsEntry;
using Entries = SafetensorsEntries;

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
    quantization_ = read_quantization_config(directory_, config_);
    entries_ = read_entries(directory_, list_safetensors(directory_));
    const bool mxfp4 = quantization_ && quantization_->method == QuantMethod::mxfp4;
    join_mxfp4_pairs(entries_, directory_, mxfp4);
    if (!quantization_) refuse_undescribed(entries_, directory_);
    if (quantization_ && !mxfp4) cache_scales_ = join_quantized(entries_, directory_, *quantization_);
  }

  Container container() const override { return Container::safetensors; }
  std::string_view architecture() const override { return architecture_; }
  const Config& config() const override { return config_; }

  std::optional<StoredTensor> find(std::string_view name) const override { return find_in(entries_, name); }
  std::optional<StoredTensor> find_cache_scale(std::string_view name) const override {
    return find_in(cache_scales_, name);
  }

  std::vector<std::string> notes() const override {
    return quantization_ ? quantization_->notes : std::vector<std::string>{};
  }
  std::string quantization() const override { return quantization_ ? quantization_->title : std::string{}; }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  std::optional<StoredTensor> find_in(const Entries& entries, std::string_view name) const {
    const auto found = entries.find(name);
    if (found == entries.end()) return std::nullopt;
    const Entry& entry = found->second;
    if (!entry.type->format) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: tensor {} has elements of type {}, which cannot be weights",
                       (directory_ / entry.file).string(), quote(name), entry.type->name));
    }
    return entry.tensor;
  }
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
  std::optional<QuantizationConfig> quantization_;
  Entries entries_, cache_scales_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& directory) {
  return std::make_unique<SafetensorsCheckpoint>(directory, read_config(directory / "config.json"));
}

}  // namespace inferno
