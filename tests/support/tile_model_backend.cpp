// The CPU with the kernels for AMX, their unit modelled in plain C++ where the CPU has none.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/host.h"
#include "support/cpu_model_backend.h"

namespace inferno::testing {
namespace {

std::unique_ptr<Backend> make(int threads) {
  const bool has_model = cpu::can_run(cpu::IsaLevel::amx_model);
  return make_cpu_backend(threads, has_model ? cpu::IsaLevel::amx_model : cpu::best_level());
}

}  // namespace

const ModelBackend& model_backend() {
  static const ModelBackend backend = [] {
    ModelBackend promises = cpu_promises(make);
    promises.is_simulated = true;
    return promises;
  }();
  return backend;
}

}  // namespace inferno::testing
