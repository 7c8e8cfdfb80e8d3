#include "model/cache_scales.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "model/tensor_plan.h"

namespace inferno {
namespace {

// The names that compressed-tensors, modelopt, older compressed-tensors and AutoFP8 give them, after the
// prefix of the layer's attention.
using Names = std::array<std::string_view, 4>;
constexpr Names key_names = {"k_scale", "k_proj.k_scale", "k_proj.output_scale", "kv_scale"};
constexpr Names value_names = {"v_scale", "v_proj.v_scale", "v_proj.output_scale", "kv_scale"};

// One for the whole tensor, or one for each head.
std::vector<float> read_scales(const std::string& name, const StoredTensor& tensor, int heads) {
  std::size_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
  if (count != 1 && count != static_cast<std::size_t>(heads)) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} scales of the KV cache for {} key heads", name, count, heads));
  }
  std::vector<float> scales = read_floats(tensor);
  for (const float scale : scales) {
    if (std::isfinite(scale) && scale > 0.0f) continue;
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected a positive scale of the KV cache, found {}", name, scale));
  }
  if (count == 1) scales.assign(static_cast<std::size_t>(heads), scales.front());
  return scales;
}

}  // namespace

std::vector<CacheScales> read_cache_scales(const ModelSpec& spec, const Checkpoint& checkpoint) {
  std::vector<CacheScales> out;
  for (const BlockSpec& block : spec.blocks) {
    const auto find = [&](const Names& names) -> std::vector<float> {
      for (const std::string_view name : names) {
        const std::string whole = fmt::format("model.layers.{}.self_attn.{}", out.size(), name);
        if (const auto tensor = checkpoint.find_cache_scale(whole)) {
          return read_scales(whole, *tensor, block.attention.kv_heads);
        }
      }
      return {};
    };
    CacheScales scales = {.keys = find(key_names), .values = find(value_names)};
    out.push_back(std::move(scales));
  }
  return out;
}

}  // namespace inferno
