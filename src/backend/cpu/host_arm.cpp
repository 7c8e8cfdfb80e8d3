// The host on 64-bit ARM: what the Linux kernel reports.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "backend/cpu/host.h"
#include "backend/cpu/kernels.h"

namespace inferno::cpu {
namespace {

bool has(unsigned long feature) {
  return (getauxval(AT_HWCAP) & feature) != 0;
}
bool has_2(unsigned long feature) {
  return (getauxval(AT_HWCAP2) & feature) != 0;
}

Kernels with_bytes(const Kernels& bytes) {
  Kernels kernels = kernels_neon;
  kernels.level = bytes.level;
  kernels.panel_kernel = bytes.panel_kernel;
  kernels.quantize = bytes.quantize;
  return kernels;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> found;
  const auto note = [&found](bool present, const char* name) {
    if (present) found.emplace_back(name);
  };
  note(has(HWCAP_ASIMD), "neon");
  note(has(HWCAP_ASIMDDP), "dotprod");
  note(has_2(HWCAP2_I8MM), "i8mm");
  note(has_2(HWCAP2_BF16), "bf16");
  note(has(HWCAP_SVE), "sve");
  note(has_2(HWCAP2_SVE2), "sve2");
  return found;
}

IsaLevel best_level() {
  for (const IsaLevel level : {IsaLevel::neon_i8mm, IsaLevel::neon_dot}) {
    if (can_run(level)) return level;
  }
  return IsaLevel::neon;
}

bool can_run(IsaLevel level) {
  switch (level) {
    case IsaLevel::portable:
    case IsaLevel::neon: return true;
    case IsaLevel::neon_dot: return has(HWCAP_ASIMDDP);
    case IsaLevel::neon_i8mm: return has(HWCAP_ASIMDDP) && has_2(HWCAP2_I8MM);
    case IsaLevel::avx2:
    case IsaLevel::avx512:
    case IsaLevel::avx512_vnni:
    case IsaLevel::amx_model:
    case IsaLevel::amx: break;
  }
  return false;
}

bool wants_prefetch() {
  return false;
}

const Kernels* kernels_for(IsaLevel level) {
  switch (level) {
    case IsaLevel::neon: return &kernels_neon;
    case IsaLevel::neon_dot: {
      static const Kernels kernels = with_bytes(kernels_neon_dot);
      return &kernels;
    }
    case IsaLevel::neon_i8mm: {
      static const Kernels kernels = with_bytes(kernels_neon_i8mm);
      return &kernels;
    }
    case IsaLevel::portable:
    case IsaLevel::avx2:
    case IsaLevel::avx512:
    case IsaLevel::avx512_vnni:
    case IsaLevel::amx_model:
    case IsaLevel::amx: break;
  }
  return nullptr;
}

}  // namespace inferno::cpu
