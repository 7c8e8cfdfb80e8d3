// The host on x86-64: what CPUID and the operating system report.
#include "backend/cpu/host.h"
#include "backend/cpu/kernels.h"

namespace inferno::cpu {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

Kernels with_vnni() {
  Kernels kernels = kernels_avx512;
  kernels.level = kernels_avx512_vnni.level;
  kernels.panel_kernel = kernels_avx512_vnni.panel_kernel;
  kernels.quantize = kernels_avx512_vnni.quantize;
  return kernels;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> found;
  const auto note = [&found](bool present, const char* name) {
    if (present) found.emplace_back(name);
  };
  // The builtin takes only literals.
  note(__builtin_cpu_supports("sse4.2"), "sse4.2");
  note(__builtin_cpu_supports("avx"), "avx");
  note(__builtin_cpu_supports("avx2"), "avx2");
  note(__builtin_cpu_supports("fma"), "fma");
  note(__builtin_cpu_supports("f16c"), "f16c");
  note(__builtin_cpu_supports("avx512f"), "avx512f");
  note(__builtin_cpu_supports("avx512bw"), "avx512bw");
  note(__builtin_cpu_supports("avx512vl"), "avx512vl");
  note(__builtin_cpu_supports("avx512dq"), "avx512dq");
  note(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  note(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  note(__builtin_cpu_supports("amx-int8"), "amx-int8");
  note(__builtin_cpu_supports("amx-bf16"), "amx-bf16");
  return found;
}

IsaLevel best_level() {
  if (has_avx512()) {
    return __builtin_cpu_supports("avx512vnni") ? IsaLevel::avx512_vnni : IsaLevel::avx512;
  }
  return has_avx2() ? IsaLevel::avx2 : IsaLevel::portable;
}

bool wants_prefetch() {
  return __builtin_cpu_is("intel") != 0;
}

const Kernels* kernels_for(IsaLevel level) {
  switch (level) {
    case IsaLevel::avx2: return &kernels_avx2;
    case IsaLevel::avx512: return &kernels_avx512;
    case IsaLevel::avx512_vnni: {
      static const Kernels kernels = with_vnni();
      return &kernels;
    }
    case IsaLevel::portable: break;
  }
  return nullptr;
}

}  // namespace inferno::cpu
