#include "model/listed_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checkpoint/config_json.h"
#include "model/architecture.h"
#include "model/check_spec.h"

namespace inferno {

std::optional<ModelSpec> spec_of_config(std::string_view json) {
  try {
    const Config config = parse_config(json, "config.json");
    const Architecture* family = find_architecture(config.text("model_type", ""), Container::safetensors);
    if (family == nullptr) return std::nullopt;
    ModelSpec spec = family->describe(config);
    if (!spec_problems(spec).empty()) return std::nullopt;
    return spec;
  } catch (const Error&) {
    return std::nullopt;
  }
}

ModelSpec typical_spec(std::uint64_t parameters, std::uint64_t context) {
  constexpr std::uint64_t usual_context = 131'072, max_context = 1 << 24;
  const double billions = std::clamp(static_cast<double>(parameters) / 1e9, 1e-3, 1e4);
  const int head_dim = billions < 2.0 ? 64 : 128;
  const int heads = std::max(8, static_cast<int>(2048 * std::cbrt(billions) / head_dim / 8) * 8);
  const int layers = std::max(1, static_cast<int>(16 * std::pow(billions, 0.38)));
  ModelSpec spec;
  spec.vocab = 128'256;
  spec.width = heads * head_dim;
  spec.context = static_cast<int>(context == 0 ? usual_context : std::min(context, max_context));
  spec.positions = Rope{.dims = head_dim};
  const BlockSpec block = {.attention = {.heads = heads, .kv_heads = 8, .head_dim = head_dim},
                           .mlp = DenseMlp{.hidden = 7 * spec.width / 2, .activation = {}}};
  spec.blocks.assign(static_cast<std::size_t>(layers), block);
  return spec;
}

}  // namespace inferno
