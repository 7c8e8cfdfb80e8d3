// GPUs: what the driver offers, and whether this program can use it.
#include <fmt/format.h>

#include "base/sizes.h"
#include "cli/doctor/doctor.h"

namespace inferno::doctor {
namespace {

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
      .facts = {{"state", name_of(probe.state)},
                {"code", probe.code},
                {"detail", probe.detail},
                {"driver_version", probe.driver_version},
                {"cuda_version", probe.cuda_version}}};
  if (sources.required == Device::cuda) finding.verdict = Verdict::fail;
  return finding;
}

// Why the device is of no use: what is known beforehand, or what its kernels compute.
std::optional<Advice> problem_of(const GpuDevice& device, const Sources& sources) {
  if (auto known = cuda::why_unusable(device, sources.gpus, sources.build)) return known;
  if (!sources.self_test) return std::nullopt;
  const auto found = sources.self_test(device.index);
  if (!found) return std::nullopt;
  return Advice{
      "the self-test failed: " + *found,
      "end other programs on the GPU (`nvidia-smi`) if memory is short; otherwise update the driver"};
}

Finding examine_gpu(const GpuDevice& device, const Sources& sources, const std::optional<Advice>& problem,
                    bool must_work) {
  const bool ailing = device.memory_errors.value_or(0) > 0;
  std::string summary =
      fmt::format("{}, {}{}, compute capability {}.{}, {}", device.name, human_size(device.total_bytes),
                  device.free_bytes ? fmt::format(" ({} free)", human_size(*device.free_bytes)) : "",
                  device.major, device.minor, driver_words(sources.gpus));
  if (device.is_slice) summary += ", a MIG slice";
  if (ailing) summary += fmt::format(", {} uncorrected memory errors", *device.memory_errors);
  if (problem) summary += "; not usable: " + problem->why;
  if (!problem && sources.self_test) summary += ", self-test passed";
  return {.check = fmt::format("gpu {}", device.index),
          .verdict = problem && must_work ? Verdict::fail
                     : problem || ailing  ? Verdict::warn
                                          : Verdict::ok,
          .summary = std::move(summary),
          .next = problem  ? problem->next
                  : ailing ? "reset or replace the GPU: results cannot be trusted"
                           : "",
          .facts = {{"state", name_of(sources.gpus.state)},
                    {"name", device.name},
                    {"total_bytes", device.total_bytes},
                    {"free_bytes", or_null(device.free_bytes)},
                    {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                    {"is_slice", device.is_slice},
                    {"uncorrected_memory_errors", or_null(device.memory_errors)},
                    {"driver_version", sources.gpus.driver_version},
                    {"cuda_version", sources.gpus.cuda_version},
                    {"built_for", sources.build.architectures},
                    {"usable", !problem.has_value()}}};
}

}  // namespace

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

}  // namespace inferno::doctor
