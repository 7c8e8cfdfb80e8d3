#include "cli/doctor/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/host.h"
#include "base/sizes.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "base/utf8.h"
#include "catalogue/builtin_model.h"
#include "cli/version.h"
#include "model/footprint.h"
#include "model/listed_model.h"
#include "text/regex/jit.h"

namespace inferno::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t comfortable_disk = std::uint64_t{5} << 30;

constexpr std::uint64_t million = 1'000'000, billion = 1000 * million;

// Whether the built-in model runs. Its files are embedded, so nothing is written to find out.
bool runs_builtin(const DeviceMemory& device) {
  std::uint64_t bytes = 0;
  std::string_view config;
  for (const EmbeddedFile& file : builtin_files()) {
    bytes += file.bytes.size();
    if (file.name == "config.json") config = file.bytes;
  }
  const auto spec = spec_of_config(config);
  return spec && estimated_footprint(*spec, bytes, device, {}).runs();
}

constexpr int usual_context = 4096;

// How many parameters a typical model in q4_k may have to fit with that context, to the nearest million.
std::uint64_t max_parameters(const DeviceMemory& device) {
  const auto has_room = [&](std::uint64_t parameters) {
    const std::uint64_t bytes = parameters * block_bytes(WeightFormat::q4_k) /
                                static_cast<std::uint64_t>(block_elements(WeightFormat::q4_k));
    return estimated_footprint(typical_spec(parameters, 0), bytes, device, {.context = usual_context}).fits();
  };
  std::uint64_t fits = 0, too_many = million;  // millions
  while (too_many - fits > 1) {
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (has_room(middle * million) ? fits : too_many) = middle;
  }
  return fits * million;
}

// Paths and names come from outside and need not be UTF-8.
std::string dumped(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

using cuda::DriverState;
using cuda::GpuDevice;

std::string_view name_of(DriverState state) {
  switch (state) {
    case DriverState::ready: return "ready";
    case DriverState::no_hardware: return "no_hardware";
    case DriverState::no_library: return "no_library";
    case DriverState::broken_library: return "broken_library";
    case DriverState::no_device: return "no_device";
    case DriverState::hidden: return "hidden";
    case DriverState::no_permission: return "no_permission";
    case DriverState::mismatch: return "mismatch";
    case DriverState::not_ready: return "not_ready";
    case DriverState::failed: return "failed";
  }
  return "";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// "driver 580.95.05 (CUDA 13.0)"
std::string driver_words(const cuda::GpuProbe& probe) {
  std::string words = "driver";
  if (!probe.driver_version.empty()) words += " " + probe.driver_version;
  if (probe.cuda_version != 0) {
    words += fmt::format(" (CUDA {}.{})", probe.cuda_version / 1000, probe.cuda_version % 1000 / 10);
  }
  return words;
}

Finding no_gpu(const Sources& sources) {
  const cuda::GpuProbe& probe = sources.gpus;
  const Advice advice = cuda::explain(probe, sources.gpu_sources);
  const bool absent = probe.state == DriverState::no_hardware;
  Finding finding = {
      .check = "gpu",
      .verdict = absent ? Verdict::ok : Verdict::warn,
      .summary = absent ? "none: no NVIDIA GPU and no driver on this machine" : "not usable: " + advice.why,
      .next = advice.next,
      .facts = dumped({{"state", name_of(probe.state)},
                       {"code", probe.code},
                       {"detail", probe.detail},
                       {"driver_version", probe.driver_version},
                       {"cuda_version", probe.cuda_version}})};
  if (sources.required != Device::cuda) return finding;
  finding.verdict = Verdict::fail;
  if (absent) finding.next = "use --device cpu, or run this on a machine with an NVIDIA GPU";
  return finding;
}

// Why the program cannot use the device: a known incompatibility, or a wrong result of its kernels.
std::optional<Advice> problem_of(const GpuDevice& device, const Sources& sources) {
  if (auto known = cuda::why_unusable(device, sources.gpus, sources.build)) return known;
  if (!sources.self_test) return std::nullopt;
  const auto found = sources.self_test(device.index);
  if (!found) return std::nullopt;
  return Advice{
      "the self-test failed: " + *found,
      "if memory is low, stop other programs on the GPU (see `nvidia-smi`); otherwise update the driver"};
}

Finding examine_gpu(const GpuDevice& device, const Sources& sources, const std::optional<Advice>& problem,
                    bool must_work) {
  const bool has_memory_errors = device.memory_errors.value_or(0) > 0;
  std::string summary =
      fmt::format("{}, {}{}, compute capability {}.{}, {}", device.name, human_size(device.total_bytes),
                  device.free_bytes ? fmt::format(" ({} free)", human_size(*device.free_bytes)) : "",
                  device.major, device.minor, driver_words(sources.gpus));
  if (device.is_slice) summary += ", a MIG slice";
  if (has_memory_errors) summary += ", " + counted(*device.memory_errors, "uncorrected memory error");
  if (problem) summary += "; not usable: " + problem->why;
  if (!problem && sources.self_test) summary += ", self-test passed";
  return {.check = fmt::format("gpu {}", device.index),
          .verdict = problem && must_work           ? Verdict::fail
                     : problem || has_memory_errors ? Verdict::warn
                                                    : Verdict::ok,
          .summary = std::move(summary),
          .next = problem             ? problem->next
                  : has_memory_errors ? "reset or replace the GPU: results cannot be trusted"
                                      : "",
          .facts = dumped({{"state", name_of(sources.gpus.state)},
                           {"name", device.name},
                           {"total_bytes", device.total_bytes},
                           {"free_bytes", or_null(device.free_bytes)},
                           {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                           {"is_slice", device.is_slice},
                           {"uncorrected_memory_errors", or_null(device.memory_errors)},
                           {"driver_version", sources.gpus.driver_version},
                           {"cuda_version", sources.gpus.cuda_version},
                           {"built_for", sources.build.architectures},
                           {"usable", !problem.has_value()}})};
}

// The folder itself or, if it does not exist yet, its nearest existing parent.
fs::path nearest_existing(const fs::path& path) {
  fs::path nearest, longer;
  std::error_code status;
  for (const fs::path& part : path) {
    longer /= part;
    if (!fs::exists(longer, status)) break;
    nearest = longer;
  }
  return nearest.empty() ? fs::path(".") : nearest;
}

int models_in(const fs::path& folder) {
  int models = 0;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    models += entry.path().filename().native().starts_with("models--") ? 1 : 0;
  }
  return models;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::warn: return "warn";
    case Verdict::fail: return "fail";
  }
  return "";
}

}  // namespace

Finding examine_program() {
  utsname system = {};
  const bool known = uname(&system) == 0;
  const std::string kernel = known ? fmt::format("{} {}", system.sysname, system.release) : "unknown";
  return {.check = "inferno",
          .summary = fmt::format(
              "{}, {} build by {}, glibc {}, {}{}", version, build_type, compiler, gnu_get_libc_version(),
              kernel, has_regex_jit() ? "" : "; tokenizers without JIT compiler: slower, same result"),
          .facts = dumped({{"version", version},
                           {"build_type", build_type},
                           {"compiler", compiler},
                           {"cuda_toolkit", cuda_toolkit},
                           {"glibc", gnu_get_libc_version()},
                           {"regex_jit", has_regex_jit()},
                           {"kernel", kernel},
                           {"machine", known ? system.machine : "unknown"}})};
}

Finding examine_cpu() {
  const auto sets = cpu::instruction_sets();
  const auto level = cpu::name_of(cpu::best_level());
  const long present = sysconf(_SC_NPROCESSORS_ONLN);
  const int usable = usable_cores();
  return {.check = "cpu",
          .summary = fmt::format(
              "{}, using {} of {} processors, {}; kernels: {}", cpu::cpu_name(), usable, present,
              sets.empty() ? "no known vector instructions" : fmt::format("{}", fmt::join(sets, " ")), level),
          .facts = dumped({{"name", cpu::cpu_name()},
                           {"processors", present},
                           {"threads", usable},
                           {"instruction_sets", sets},
                           {"kernels", level}})};
}

Finding examine_memory(const Sources& sources) {
  const SystemRoots roots = SystemRoots::below(sources.root);
  const SystemMemory memory = system_memory(roots);
  if (memory.total == 0) {
    return {.check = "memory", .verdict = Verdict::warn, .summary = "unknown: /proc/meminfo cannot be read"};
  }
  const auto backend = make_cpu_backend(0, cpu::best_level(), roots);
  const DeviceMemory device = device_memory(*backend);
  const std::uint64_t parameters = max_parameters(device);
  Finding finding = {.check = "memory",
                     .facts = dumped({{"total_bytes", memory.total},
                                      {"available_bytes", memory.available},
                                      {"limit_bytes", memory.limit ? Json(*memory.limit) : nullptr},
                                      {"obtainable_bytes", memory.obtainable},
                                      {"max_parameters_q4_k", parameters}})};
  finding.summary = fmt::format("{}, {} available", human_size(memory.total), human_size(memory.available));
  if (memory.limit) {
    finding.summary += fmt::format("; control group limit {}, {} free", human_size(*memory.limit),
                                   human_size(memory.obtainable));
  }
  if (parameters > 0) {
    finding.summary +=
        fmt::format("; room for about {:.1f} B parameters in q4_k and a context of {} in a KV cache of {}",
                    static_cast<double>(parameters) / static_cast<double>(billion), usual_context,
                    name_of(CacheTypes{device.cache, device.cache}));
  }
  if (parameters < billion) {
    finding.verdict = runs_builtin(device) ? Verdict::warn : Verdict::fail;
    finding.next = memory.limit
                       ? "free some memory, or raise the memory limit of the container or control group"
                       : "free some memory: only the smallest models fit";
  }
  return finding;
}

std::vector<Finding> examine_gpus(const Sources& sources) {
  if (sources.gpus.state != DriverState::ready) return {no_gpu(sources)};
  std::vector<std::optional<Advice>> problems;
  bool some_work = false;
  for (const GpuDevice& device : sources.gpus.devices) {
    problems.push_back(problem_of(device, sources));
    some_work = some_work || !problems.back();
  }
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const bool must_work = sources.required == Device::cuda && !some_work;
    findings.push_back(examine_gpu(sources.gpus.devices[i], sources, problems[i], must_work));
  }
  return findings;
}

Finding examine_cache(const Sources& sources) {
  const auto cache = sources.environment.hub_cache();
  if (!cache) {
    return {.check = "cache",
            .verdict = Verdict::warn,
            .summary = "no cache folder: neither HOME nor HF_HOME is set and the user has no home directory",
            .next = "export HF_HOME=/some/folder",
            .facts = "{}"};
  }
  std::error_code status;
  const bool exists = fs::is_directory(cache->path, status);
  const fs::path nearest = nearest_existing(cache->path);
  const bool writable = fs::is_directory(nearest, status) && access(nearest.c_str(), W_OK | X_OK) == 0;
  const fs::space_info space = fs::space(nearest, status);
  const std::uint64_t free = status ? 0 : space.available;
  const int models = exists ? models_in(cache->path) : 0;

  Finding finding = {.check = "cache",
                     .facts = dumped({{"path", cache->path.string()},
                                      {"said_by", cache->said_by},
                                      {"exists", exists},
                                      {"writable", writable},
                                      {"free_bytes", free},
                                      {"models", models}})};
  finding.summary = fmt::format("{} ({}), {}, {}, {} free", cache->path.string(), cache->said_by,
                                exists ? counted(models, "model") : "does not exist yet",
                                writable ? "writable" : "not writable", human_size(free));
  if (!writable) {
    finding.verdict = Verdict::warn;
    finding.next = fmt::format("make {} writable, or set HF_HOME to another folder", nearest.string());
  } else if (free < comfortable_disk) {
    finding.verdict = Verdict::warn;
    finding.next = "free some disk space, or set HF_HOME to a folder on a larger disk";
  }
  return finding;
}

Finding examine_settings(const Sources& sources) {
  std::vector<std::string> words;
  Json facts = Json::object();
  for (const HonouredVariable& variable : Environment::honoured()) {
    const auto value = sources.environment.get(variable.name);
    if (value) words.push_back(fmt::format("{}={}", variable.name, *value));
    facts[std::string(variable.name)] = value ? Json(*value) : nullptr;
  }
  return {.check = "settings",
          .summary = words.empty() ? "none of the environment variables that Inferno reads is set"
                                   : fmt::format("{}", fmt::join(words, " ")),
          .facts = dumped(facts)};
}

std::vector<Finding> examine(const Sources& sources) {
  std::vector<Finding> findings = {examine_program(), examine_cpu(), examine_memory(sources)};
  std::ranges::move(examine_gpus(sources), std::back_inserter(findings));
  findings.push_back(examine_cache(sources));
  findings.push_back(examine_settings(sources));
  return findings;
}

int count(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<int>(std::ranges::count(findings, verdict, &Finding::verdict));
}

std::string as_table(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text +=
        fmt::format(" {:<4} {:<9} {}\n", name_of(finding.verdict), finding.check, printable(finding.summary));
    if (!finding.next.empty()) text += fmt::format("      {:<9} -> {}\n", "", printable(finding.next));
  }
  text +=
      fmt::format("{}, {} (--json prints all facts)\n", counted(count(findings, Verdict::warn), "warning"),
                  counted(count(findings, Verdict::fail), "error"));
  return text;
}

std::string as_json(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    Json entry = {
        {"check", finding.check}, {"verdict", name_of(finding.verdict)}, {"summary", finding.summary}};
    if (!finding.next.empty()) entry["next"] = finding.next;
    entry["facts"] = Json::parse(finding.facts);
    checks.push_back(std::move(entry));
  }
  const Json all = {{"checks", std::move(checks)},
                    {"warnings", count(findings, Verdict::warn)},
                    {"errors", count(findings, Verdict::fail)}};
  return dumped(all, 2) + "\n";
}

}  // namespace inferno::doctor
