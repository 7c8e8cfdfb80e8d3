// The host on x86-64: what CPUID and the operating system report.
#include <sys/syscall.h>
#include <unistd.h>

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

bool has_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

// Linux grants the large state of AMX to a process, its later threads included, when it asks for it.
bool obtain_tiles() {
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool has_amx() {
  static const bool found = has_vnni() && __builtin_cpu_supports("amx-tile") &&
                            __builtin_cpu_supports("amx-int8") && __builtin_cpu_supports("amx-bf16") &&
                            obtain_tiles();
  return found;
}

Kernels with_vnni() {
  Kernels kernels = kernels_avx512;
  kernels.level = kernels_avx512_vnni.level;
  kernels.panel_kernel = kernels_avx512_vnni.panel_kernel;
  kernels.quantize = kernels_avx512_vnni.quantize;
  return kernels;
}

Kernels with_tiles(const Kernels& of_level) {
  Kernels kernels = with_vnni();
  kernels.level = of_level.level;
  kernels.panel_kernel = of_level.panel_kernel;
  kernels.tiles = of_level.tiles;
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
  for (const IsaLevel level : {IsaLevel::amx, IsaLevel::avx512_vnni, IsaLevel::avx512, IsaLevel::avx2}) {
    if (can_run(level)) return level;
  }
  return IsaLevel::portable;
}

bool can_run(IsaLevel level) {
  switch (level) {
    case IsaLevel::portable: return true;
    case IsaLevel::avx2: return has_avx2();
    case IsaLevel::avx512: return has_avx512();
    case IsaLevel::avx512_vnni:
    case IsaLevel::amx_model: return has_vnni();
    case IsaLevel::amx: return has_amx();
    case IsaLevel::neon:
    case IsaLevel::neon_dot:
    case IsaLevel::neon_i8mm: break;
  }
  return false;
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
    case IsaLevel::amx_model: {
      static const Kernels kernels = with_tiles(kernels_amx_model);
      return &kernels;
    }
    case IsaLevel::amx: {
      static const Kernels kernels = with_tiles(kernels_amx);
      return &kernels;
    }
    case IsaLevel::portable:
    case IsaLevel::neon:
    case IsaLevel::neon_dot:
    case IsaLevel::neon_i8mm: break;
  }
  return nullptr;
}

}  // namespace inferno::cpu
