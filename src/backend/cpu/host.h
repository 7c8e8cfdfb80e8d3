// What this CPU can do: its instruction sets, the kernels chosen for it, and how fast it reads memory.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::cpu {

// `portable` is plain C++ and runs anywhere. Each level contains the ones before it of the same processor
// family. `amx_model` is `amx` with its unit modelled in plain C++: slow, for tests, and never the best.
enum class IsaLevel { portable, neon, neon_dot, neon_i8mm, avx2, avx512, avx512_vnni, amx_model, amx };
inline constexpr std::array all_levels = {IsaLevel::portable,    IsaLevel::neon,      IsaLevel::neon_dot,
                                          IsaLevel::neon_i8mm,   IsaLevel::avx2,      IsaLevel::avx512,
                                          IsaLevel::avx512_vnni, IsaLevel::amx_model, IsaLevel::amx};

std::string_view name_of(IsaLevel level);
std::optional<IsaLevel> level_named(std::string_view name);

// Instruction sets that the kernels could use, if the CPU has them and the operating system enables them,
// such as "avx2" or "avx512vnni"; the name of the processor architecture on other machines.
std::vector<std::string> instruction_sets();

// The fastest level that this CPU and this build have.
IsaLevel best_level();
bool can_run(IsaLevel level);

// Whether decoding gains from software prefetch. Measured with one token and Q8_0 weights on two cores: 1.4
// times the speed on an Emerald Rapids Xeon, 0.7 times on a Zen 4 EPYC.
bool wants_prefetch();

std::string cpu_name();  // "AMD EPYC 9354", as /proc/cpuinfo has it

// Bytes a second that `threads` threads read together from `bytes` of memory on huge pages: the best of a
// few passes. This bounds the speed of decoding. Use at least 1 GiB, so that caches do not help. Error{io} if
// there is not enough memory.
double read_bandwidth(int threads, std::size_t bytes);

}  // namespace inferno::cpu
