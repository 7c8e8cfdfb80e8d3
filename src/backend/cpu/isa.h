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

std::string cpu_name();  // "AMD EPYC 9354", or what the system says of it

}  // namespace inferno::cpu
