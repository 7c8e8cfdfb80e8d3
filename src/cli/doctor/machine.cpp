// The machine itself: this program, the CPU, the memory.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/cpu/isa.h"
#include "base/sizes.h"
#include "base/thread_pool.h"
#include "cli/doctor/doctor.h"
#include "cli/system_memory.h"
#include "cli/version.h"

namespace inferno::doctor {
namespace {

// Less than this and not even the smallest useful model fits; less than that and nothing at all does.
constexpr std::uint64_t comfortable_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t necessary_bytes = std::uint64_t{64} << 20;

}  // namespace

Finding examine_program() {
  utsname system = {};
  const bool known = uname(&system) == 0;
  const std::string kernel = known ? fmt::format("{} {}", system.sysname, system.release) : "unknown";
  return {.check = "inferno",
          .summary = fmt::format("{}, {} build by {}, glibc {}, {}", version, build_type, compiler,
                                 gnu_get_libc_version(), kernel),
          .facts = {{"version", version},
                    {"build_type", build_type},
                    {"compiler", compiler},
                    {"cuda_toolkit", cuda_toolkit},
                    {"glibc", gnu_get_libc_version()},
                    {"kernel", kernel},
                    {"machine", known ? system.machine : "unknown"}}};
}

Finding examine_cpu() {
  const auto sets = cpu::instruction_sets();
  const auto level = cpu::name_of(cpu::best_level());
  const long present = sysconf(_SC_NPROCESSORS_ONLN);
  const int usable = usable_cores();
  return {.check = "cpu",
          .summary = fmt::format(
              "{}, {} of {} processors used, {}; kernels: {}", cpu::cpu_name(), usable, present,
              sets.empty() ? "no vector instructions known" : fmt::format("{}", fmt::join(sets, " ")), level),
          .facts = {{"name", cpu::cpu_name()},
                    {"processors", present},
                    {"threads", usable},
                    {"instruction_sets", sets},
                    {"kernels", level}}};
}

Finding examine_memory(const Sources& sources) {
  const SystemMemory memory = system_memory(sources.root);
  Finding finding = {.check = "memory",
                     .facts = {{"total_bytes", memory.total},
                               {"available_bytes", memory.available},
                               {"limit_bytes", memory.limit ? Json(*memory.limit) : nullptr},
                               {"obtainable_bytes", memory.obtainable}}};
  if (memory.total == 0) {
    finding.verdict = Verdict::warn;
    finding.summary = "unknown: /proc/meminfo cannot be read";
    finding.facts = Json::object();
    return finding;
  }
  finding.summary = fmt::format("{}, {} available", human_size(memory.total), human_size(memory.available));
  if (memory.limit) {
    finding.summary += fmt::format("; this control group may use {}, {} of it free",
                                   human_size(*memory.limit), human_size(memory.obtainable));
  }
  if (memory.obtainable < comfortable_bytes) {
    finding.verdict = memory.obtainable < necessary_bytes ? Verdict::fail : Verdict::warn;
    finding.next = memory.limit ? "free some memory, or raise the limit of the container or control group"
                                : "free some memory: only the smallest models fit";
  }
  return finding;
}

}  // namespace inferno::doctor
