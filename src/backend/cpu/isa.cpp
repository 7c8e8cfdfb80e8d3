#include "backend/cpu/isa.h"

#include <fstream>
#include <utility>

namespace inferno::cpu {
namespace {

constexpr std::array level_names = {std::pair{IsaLevel::portable, std::string_view("portable")},
                                    std::pair{IsaLevel::avx2, std::string_view("avx2")},
                                    std::pair{IsaLevel::avx512, std::string_view("avx512")},
                                    std::pair{IsaLevel::avx512_vnni, std::string_view("avx512_vnni")}};

}  // namespace

std::string_view name_of(IsaLevel level) {
  for (const auto& [known, name] : level_names) {
    if (known == level) return name;
  }
  return "unknown";
}

std::optional<IsaLevel> level_named(std::string_view name) {
  for (const auto& [level, known] : level_names) {
    if (known == name) return level;
  }
  return std::nullopt;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace inferno::cpu
