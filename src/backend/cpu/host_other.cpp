// The host on processors other than x86-64 and 64-bit ARM: portable kernels, vectorized by the compiler
// alone.
#include "backend/cpu/host.h"
#include "backend/cpu/kernels.h"

namespace inferno::cpu {

std::vector<std::string> instruction_sets() {
  return {INFERNO_BASE_INSTRUCTIONS};
}

IsaLevel best_level() {
  return IsaLevel::portable;
}

bool can_run(IsaLevel level) {
  return level == IsaLevel::portable;
}

const Kernels* kernels_for(IsaLevel) {
  return nullptr;
}

bool wants_prefetch() {
  return false;
}

}  // namespace inferno::cpu
