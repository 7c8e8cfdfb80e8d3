// The CPU with its best kernels on one, two and three threads, so that work is not split, split evenly and
// split unevenly, and with every other instruction set that this machine supports.
#include <fmt/format.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "ops/backends.h"

namespace inferno {

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const cpu::IsaLevel level : cpu::all_levels) {
    const std::string_view name = cpu::name_of(level);
    if (!cpu::can_run(level)) continue;
    if (level != cpu::best_level()) {
      names.push_back(fmt::format("cpu_{}_2", name));
      continue;
    }
    for (const int threads : {1, 2, 3}) names.push_back(fmt::format("cpu_{}_{}", name, threads));
  }
  return names;
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  const std::size_t first = name.find('_') + 1, last = name.rfind('_');
  const auto level = cpu::level_named(name.substr(first, last - first));
  expects(level.has_value(), "the backend's name holds a level");
  return make_cpu_backend(std::stoi(name.substr(last + 1)), *level);
}

}  // namespace inferno
