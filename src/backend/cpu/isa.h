// What this CPU can do, by name, and which kernels are chosen for it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::cpu {

// Each level contains the ones before it. `portable` is plain C++ and runs anywhere.
enum class IsaLevel { portable, avx2, avx512, avx512_vnni };
inline constexpr std::array all_levels = {IsaLevel::portable, IsaLevel::avx2, IsaLevel::avx512,
                                          IsaLevel::avx512_vnni};

std::string_view name_of(IsaLevel level);
std::optional<IsaLevel> level_named(std::string_view name);

// Instruction sets that concern us, found and enabled by the operating system, such as "avx2" or
// "avx512vnni"; "neon" or another base set on other processors.
std::vector<std::string> instruction_sets();

// The highest level that this CPU and this build have.
IsaLevel best_level();

// Whether decoding gains from asking for memory ahead of its use. Measured with one token and Q8_0 weights on
// two cores: on an Emerald Rapids Xeon it makes 1.4 times the speed, on a Zen 4 EPYC 0.7 times.
bool wants_read_ahead();

std::string cpu_name();  // "AMD EPYC 9354", or what the system says of it

}  // namespace inferno::cpu
