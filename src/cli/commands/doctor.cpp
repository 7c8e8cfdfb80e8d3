// `inferno doctor`: gathers what the checks of cli/doctor/doctor.h need and prints their findings.
#include "cli/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "backend/cuda/probe.h"
#include "base/error.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/doctor/device_check.h"
#include "cli/doctor/kernels.h"
#include "cli/version.h"

namespace inferno::command {
namespace {

struct Options {
  bool json = false, self_test = false, verbose = false;
  doctor::Device device = doctor::Device::any;
};

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(separator));
    parts.emplace_back(part);
    list.remove_prefix(std::min(list.size(), part.size() + 1));
  }
  return parts;
}

doctor::Sources gather(doctor::Device required) {
  Environment environment = Environment::of_process();
  const cuda::ProbeSources gpu_sources = {.visible_devices = environment.get("CUDA_VISIBLE_DEVICES")};
  return {.environment = std::move(environment),
          .gpus = cuda::probe(gpu_sources),
          .gpu_sources = gpu_sources,
          .build = {.toolkit_version = cuda_toolkit, .architectures = split(cuda_architectures, ';')},
          .required = required,
          .self_test = cuda_toolkit == 0 ? nullptr : cuda::self_check};
}

const char* name_of(doctor::Device device) {
  switch (device) {
    case doctor::Device::cuda: return "cuda";
    case doctor::Device::cpu: return "cpu";
    case doctor::Device::any: break;
  }
  return "auto";
}

// has_failure: a finding already says why a device cannot be used.
void print_kernels(const DeviceOptions& device, bool has_failure) {
  try {
    fmt::print(stderr, "{}", doctor::describe_kernels(*make_backend(device)));
  } catch (const Error& error) {
    if (!has_failure) throw;
    fmt::print(stderr, "kernels: not listed: {}\n", error.what());
  }
}

void run(const Options& options) {
  const doctor::Sources sources = gather(options.device);
  auto findings = doctor::examine(sources);
  const DeviceOptions device = {.device = name_of(options.device)};
  if (options.self_test) findings.push_back(doctor::check_device(device, sources.environment));
  std::fputs((options.json ? doctor::as_json(findings) : doctor::as_table(findings)).c_str(), stdout);
  const bool has_failure =
      std::ranges::find(findings, doctor::Verdict::fail, &doctor::Finding::verdict) != findings.end();
  if (options.verbose) print_kernels(device, has_failure);
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict != doctor::Verdict::fail) continue;
    const bool gpu = finding.check.starts_with("gpu");
    fail(gpu ? ErrorKind::device : ErrorKind::io, fmt::format("{}: {}", finding.check, finding.summary),
         {.why = {}, .next = finding.next});
  }
}

}  // namespace

void doctor(CommandLine app) {
  const auto options = std::make_shared<Options>();
  const Command command = app.command("doctor", "Check this machine: CPU, memory, GPUs, cache folder");
  command.flag("--json", options->json, "print the findings as JSON");
  command.flag("--verbose", options->verbose, "also list on stderr which kernels run for which weights");
  command.flag("--self-test", options->self_test,
               "run the built-in model and compare its tokens with the reference");
  command.choice<doctor::Device>(
      "--device", options->device,
      {{"auto", doctor::Device::any}, {"cpu", doctor::Device::cpu}, {"cuda", doctor::Device::cuda}},
      "device that must work: with cuda, the lack of a usable GPU is an error (exit code 7)");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
