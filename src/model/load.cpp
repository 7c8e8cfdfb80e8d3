#include "model/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "model/check_spec.h"
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
  return plan;
}

LoadedModel load_model(const Checkpoint& checkpoint, Backend& backend, DecoderLimits limits) {
  ModelDescription plan = describe_model(checkpoint);
  const TensorPlan tensors = plan_weights(plan.spec, *plan.architecture, checkpoint, backend);
  const Footprint footprint = model_footprint(plan.spec, tensors, device_memory(backend), limits);
  require_fit(footprint, checkpoint.config().origin(), backend.info());
  limits.context = footprint.context;
  BoundModel bound = bind(plan.spec, tensors, backend);
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
