#include "cli/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "engine/cache_plan.h"
#include "model/kv_cache.h"
#include "model/tensor_plan.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

std::uint64_t bytes_of(const PlannedPart& part) {
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : part.tensors) bytes += tensor.bytes;
  for (const StoredTensor& bias : part.biases) bytes += bias.bytes;
  return bytes;
}

std::uint64_t elements_of(const PlannedPart& part, int cols) {
  return static_cast<std::uint64_t>(std::max(part.experts, 1)) * static_cast<std::uint64_t>(part.rows) *
         static_cast<std::uint64_t>(cols);
}

// The bytes of a slot that one token reads: the chosen experts, and no row but one of a table.
std::uint64_t read_by_token(const ModelSpec& spec, const PlannedSlot& slot, std::uint64_t bytes) {
  if (slot.request.slot == Slot::embedding) return spec.tied_head ? bytes : 0;
  if (slot.request.experts == 0) return bytes;
  const auto& mlp = std::get<MoeMlp>(spec.blocks[static_cast<std::size_t>(slot.request.layer)].mlp);
  return bytes * static_cast<std::uint64_t>(mlp.active) /
         static_cast<std::uint64_t>(std::max(mlp.experts, 1));
}

void add_weights(const Checkpoint& checkpoint, const ModelPlan& model, RunPlan& plan) {
  const TensorPlan tensors = plan_tensors(model.spec, *model.architecture, checkpoint);
  if (!tensors.problems.empty()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {}", checkpoint.config().origin(), fmt::join(tensors.problems, "; ")));
  }
  for (const PlannedSlot& slot : tensors.slots) {
    std::uint64_t bytes = 0;
    for (const PlannedPart& part : slot.parts) {
      bytes += bytes_of(part);
      plan.parameters += elements_of(part, slot.request.cols);
    }
    plan.weights += bytes;
    plan.token_bytes += read_by_token(model.spec, slot, bytes);
  }
}

std::uint64_t cache_bytes(const ModelSpec& spec, const Backend& backend, int batch, int context) {
  const EngineOptions options = {.max_sequences = batch};
  constexpr std::size_t boundless = std::numeric_limits<std::size_t>::max() / 4;
  return plan_cache(spec, backend.cache_type(), options, context, boundless).bytes;
}

std::uint64_t workspace_for(const ModelSpec& spec, const Backend& backend, int batch, int context) {
  const EngineOptions options;
  const DecoderLimits limits = {
      .max_tokens = options.max_step_tokens, .max_logit_rows = batch, .context = context};
  return workspace_bytes(spec, limits, backend.activation_type());
}

// Whether cache and workspace of such a context fit beside the weights.
bool fits_beside(const ModelSpec& spec, const Backend& backend, const RunPlan& plan, int context) {
  const std::uint64_t fixed = plan.weights + workspace_for(spec, backend, plan.batch, context);
  if (fixed >= plan.available) return false;
  return cache_bytes(spec, backend, plan.batch, context) <= (plan.available - fixed) / 2;
}

int max_context(const ModelSpec& spec, const Backend& backend, const RunPlan& plan) {
  int fits = 0, too_long = spec.context + 1;
  while (too_long - fits > 1) {
    const int middle = fits + (too_long - fits) / 2;
    (fits_beside(spec, backend, plan, middle) ? fits : too_long) = middle;
  }
  return fits;
}

}  // namespace

std::uint64_t RunPlan::read_per_token(int depth) const {
  std::uint64_t bytes = token_bytes;
  for (const auto& [window, per_token] : windows) {
    bytes += per_token * static_cast<std::uint64_t>(window == 0 ? depth : std::min(window, depth));
  }
  return bytes;
}

RunPlan plan_run(const Checkpoint& checkpoint, const ModelPlan& model, const Backend& backend,
                 const RunWish& wish) {
  const ModelSpec& spec = model.spec;
  RunPlan plan;
  plan.batch = wish.batch;
  plan.model_context = spec.context;
  plan.context = wish.context == 0 ? spec.context : wish.context;
  if (plan.context > spec.context) {
    fail(ErrorKind::invalid_request,
         fmt::format("a context of {} tokens is longer than the {} this model was made for", plan.context,
                     spec.context));
  }
  add_weights(checkpoint, model, plan);
  plan.available = backend.info().free_bytes;
  for (const int window : window_groups(spec)) {
    const std::uint64_t per_token = cache_bytes_per_token(spec, window, backend.cache_type());
    plan.windows.emplace_back(window, per_token);
    if (window == 0) plan.cache_token_bytes += per_token;
  }
  plan.cache = cache_bytes(spec, backend, plan.batch, plan.context);
  plan.workspace = workspace_for(spec, backend, plan.batch, plan.context);
  plan.max_context = max_context(spec, backend, plan);
  return plan;
}

}  // namespace inferno
