#include "model/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "model/cache_scales.h"
#include "model/check_spec.h"
#include "model/export/weight_types.h"
#include "model/kv_cache.h"
#include "model/rope.h"

namespace inferno {
namespace {

void refuse_unread(const Config& config, ModelDescription& plan) {
  const UnreadKeys keys = unread_keys(config);
  if (!keys.refused.empty()) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: \"{}\" is not supported for this architecture", config.origin(),
                     fmt::join(keys.refused, "\", \"")),
         {.why = "such a key changes what the model computes, and ignoring it would give wrong answers",
          .next = "remove it only if you know that it has no effect on this model"});
  }
  for (const std::string& key : keys.ignored) {
    plan.notes.push_back(fmt::format("{}: unknown key \"{}\" ignored", config.origin(), key));
  }
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  ModelDescription plan = {.architecture = &architecture_for(checkpoint), .spec = {}, .notes = {}};
  plan.spec = plan.architecture->describe(config);
  const std::vector<std::string> problems = spec_problems(plan.spec);
  if (!problems.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: {}", config.origin(), fmt::join(problems, "; ")));
  }
  refuse_unread(config, plan);
  std::ranges::copy(checkpoint.notes(), std::back_inserter(plan.notes));
  return plan;
}

LoadedModel load_model(const Checkpoint& checkpoint, Backend& backend, DecoderLimits limits,
                       std::optional<WeightFormat> quantize) {
  ModelDescription plan = describe_model(checkpoint);
  TensorPlan tensors = plan_weights(plan.spec, *plan.architecture, checkpoint, backend);
  if (quantize) round_at_load(tensors, *quantize, checkpoint, plan.notes);
  const CacheTypes cache = choose_cache_types(plan.spec, backend, limits.cache);
  const bool has_fp8 = cache.keys == DType::f8_e4m3 || cache.values == DType::f8_e4m3;
  const std::vector<CacheScales> scales =
      has_fp8 ? read_cache_scales(plan.spec, checkpoint) : std::vector<CacheScales>();
  const Footprint footprint = model_footprint(plan.spec, tensors, device_memory(backend), limits);
  require_fit(footprint, checkpoint.config().origin(), backend.info());
  limits.context = footprint.context;
  BoundModel bound = inferno::bind(plan.spec, tensors, scales, backend);  // not std::bind
  LoadReport report = {.weights = footprint.weights,
                       .notes = std::move(plan.notes),
                       .conversions = std::move(bound.conversions)};
  if (const auto* rope = std::get_if<Rope>(&plan.spec.positions)) {
    if (const auto* scaling = std::get_if<LongRopeScaling>(&rope->scaling)) {
      report.notes.push_back(
          fmt::format("LongRoPE: {} factors, because the context is {} and the original one {}",
                      uses_long_factors(*scaling, limits.context) ? "long" : "short", limits.context,
                      scaling->original_context));
    }
  }
  return {std::make_unique<Decoder>(std::move(plan.spec), std::move(bound.weights), backend, limits),
          std::move(report)};
}

}  // namespace inferno
