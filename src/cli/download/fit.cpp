#include "cli/download/fit.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/sizes.h"
#include "engine/engine_options.h"
#include "model/listed_model.h"
#include "service/loading/device.h"

namespace inferno {

LocalMemory local_memory(const Backend& backend) {
  const bool is_gpu = backend.info().kernels.starts_with("sm_");
  return {.name = is_gpu ? "GPU" : "memory", .device = device_memory(backend)};
}

EstimatedFit estimate_fit(const ListedModel& model, const DeviceMemory& device) {
  const std::optional<ModelSpec> described = spec_of_config(model.config);
  // If the count is unknown, one for each byte is close enough for a typical spec.
  const std::uint64_t parameters = model.parameters > 0 ? model.parameters : model.weight_bytes;
  const ModelSpec spec = described ? *described : typical_spec(parameters, model.context);
  EngineOptions engine;
  if (device.backend != nullptr) engine.suit(device.backend->step_rows());
  return {.footprint =
              estimated_footprint(spec, model.weight_bytes, device, {.max_tokens = engine.max_step_tokens},
                                  {.block_size = engine.block_size}),
          .is_estimate = !described};
}

std::string memory_shortage(const ListedModel& model, const LocalMemory& memory) {
  if (model.weight_bytes == 0 || memory.device.free_bytes == 0) return "";
  const Footprint footprint = estimate_fit(model, memory.device).footprint;
  if (footprint.required() <= memory.device.free_bytes) return "";
  return fmt::format("It needs about {} of {}, but this machine has only {} free",
                     human_size(footprint.required()), memory.name == "GPU" ? "GPU memory" : "memory",
                     human_size(memory.device.free_bytes));
}

std::string memory_shortage(const ListedModel& model) try {
  const std::unique_ptr<Backend> backend = open_device({});
  return memory_shortage(model, local_memory(*backend));
} catch (const Error&) {
  return "";  // a device that cannot be used is no reason not to download a model
}

}  // namespace inferno
