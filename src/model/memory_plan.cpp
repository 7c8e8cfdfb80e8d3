#include "model/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/sizes.h"
#include "model/kv_cache.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

// What `inferno convert` can make, from large to small.
constexpr WeightFormat smaller[] = {WeightFormat::q8_0, WeightFormat::q6_k, WeightFormat::q4_k};

double bits_of(WeightFormat format) {
  const int block = block_elements(format);
  return 8.0 * static_cast<double>(bytes_for(format, static_cast<std::size_t>(block))) / block;
}

std::string what_would_fit(const MemoryPlan& plan, std::uint64_t free) {
  if (plan.parameters == 0 || free <= plan.activations) return "no weights fit beside the activations";
  const double bits =
      8.0 * static_cast<double>(free - plan.activations) / static_cast<double>(plan.parameters);
  for (const WeightFormat format : smaller) {
    if (bits_of(format) >= bits) continue;
    return fmt::format("weights of {:.1f} bits each would fit, so {} does: `inferno convert --type {}`", bits,
                       name_of(format), name_of(format));
  }
  return fmt::format("only weights of {:.1f} bits each would fit", bits);
}

}  // namespace

MemoryPlan plan_memory(const ModelSpec& spec, const Checkpoint& checkpoint, const DecoderLimits& limits,
                       const Backend& backend) {
  MemoryPlan plan = {.activations = workspace_bytes(spec, limits, backend.activation_type()),
                     .context = limits.context};
  for (const std::string& name : checkpoint.names()) {
    const auto tensor = checkpoint.find(name);
    if (!tensor) continue;
    plan.weights += tensor->bytes;
    plan.parameters += static_cast<std::uint64_t>(
        std::accumulate(tensor->shape.begin(), tensor->shape.end(), std::int64_t{1}, std::multiplies<>()));
  }
  for (const int window : window_groups(spec)) {
    const int seen = window == 0 ? limits.context : std::min(window, limits.context);
    plan.cache +=
        cache_bytes_per_token(spec, window, backend.cache_type()) * static_cast<std::uint64_t>(seen);
  }
  return plan;
}

void refuse_what_cannot_fit(const MemoryPlan& plan, const std::string& model, const DeviceInfo& device) {
  if (device.free_bytes == 0 || plan.least() <= device.free_bytes) return;
  fail(ErrorKind::io,
       fmt::format("{}: needs {}, and {} has {} of {} free\n"
                   "  weights              {}\n"
                   "  activations          {}\n"
                   "  key/value cache      {} for one sequence of {} tokens, less for shorter ones",
                   model, human_size(plan.least()), device.name, human_size(device.free_bytes),
                   human_size(device.total_bytes), human_size(plan.weights), human_size(plan.activations),
                   human_size(plan.cache), plan.context),
       {.why = what_would_fit(plan, device.free_bytes),
        .next = "choose a smaller model or quantization, end other programs that use this memory, or choose "
                "another --device"});
}

}  // namespace inferno
