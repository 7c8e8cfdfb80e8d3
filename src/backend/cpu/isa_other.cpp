// Processors other than x86-64: the portable kernels, which the compiler vectorizes as far as it can.
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"

namespace inferno::cpu {

std::vector<std::string> instruction_sets() {
  return {INFERNO_BASE_INSTRUCTIONS};
}

IsaLevel best_level() {
  return IsaLevel::portable;
}

const Kernels* kernels_for(IsaLevel) {
  return nullptr;
}

bool wants_read_ahead() {
  return false;
}

}  // namespace inferno::cpu
