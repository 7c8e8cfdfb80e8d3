#include "support/cpu_model_backend.h"

namespace inferno::testing {

const ModelBackend& model_backend() {
  static const ModelBackend backend = cpu_promises(make_cpu_backend);
  return backend;
}

}  // namespace inferno::testing
