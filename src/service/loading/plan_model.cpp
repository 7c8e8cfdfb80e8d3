#include "service/loading/plan_model.h"

#include <string>
#include <vector>

#include "engine/engine_options.h"
#include "model/kv_cache.h"
#include "model/load.h"
#include "model/weights.h"

namespace inferno {

Footprint plan_model(const Checkpoint& checkpoint, const Backend& backend, const PlannedLoad& load) {
  const ModelDescription model = describe_model(checkpoint);
  TensorPlan weights = plan_weights(model.spec, *model.architecture, checkpoint, backend);
  std::vector<std::string> notes;
  if (load.quantize) round_at_load(weights, *load.quantize, checkpoint, notes);
  choose_cache_types(model.spec, backend, load.cache);  // throws
  EngineOptions engine;
  engine.suit(backend.step_rows());
  return model_footprint(model.spec, weights, device_memory(backend),
                         {.max_tokens = engine.max_step_tokens,
                          .max_logit_rows = load.sequences,
                          .context = load.context,
                          .cache = load.cache},
                         {.sequences = load.sequences, .block_size = engine.block_size});
}

}  // namespace inferno
