// `inferno doctor`: gathers what the checks of cli/doctor/doctor.h need and prints their findings.
#include "cli/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "backend/cuda/probe.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "base/utf8.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/doctor/device_check.h"
#include "cli/doctor/expected_speed.h"
#include "cli/doctor/kernels.h"
#include "cli/doctor/recommendation.h"
#include "cli/environment.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"
#include "hub/names/aliases.h"

namespace inferno::command {
namespace {

struct Options {
  bool json = false, self_test = false, verbose = false;
  std::string device = "auto";
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

bool is_gpu(std::string_view device) {
  constexpr std::string_view gpu = "cuda:";
  const std::string_view number = device.starts_with(gpu) ? device.substr(gpu.size()) : "";
  return device == "cuda" ||
         (!number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos);
}

std::string device_problem(const std::string& device) {
  if (device == "auto" || device == "cpu" || is_gpu(device)) return "";
  return fmt::format("expected auto, cpu, cuda or cuda:N, found {}", quote(device));
}

doctor::Device required(std::string_view device) {
  return is_gpu(device) ? doctor::Device::cuda : device == "cpu" ? doctor::Device::cpu : doctor::Device::any;
}

// has_failure: a finding already says why a device cannot be used.
void print_kernels(const DeviceOptions& device, bool has_failure) {
  try {
    say(doctor::describe_kernels(*make_backend(device)));
  } catch (const Error& error) {
    if (!has_failure) throw;
    say(fmt::format("kernels: not listed: {}\n", error.what()));
  }
}

// What the machine is good for, and a finding about it. A device that cannot be opened has its own finding.
std::string add_recommendation(std::vector<doctor::Finding>& findings, const DeviceOptions& device,
                               const Environment& environment) {
  constexpr std::size_t sample = std::size_t{1} << 28;  // quick, and beyond the caches of most CPUs
  try {
    const auto backend = open_device(device);
    const Catalogue catalogue(catalogue_settings(environment));
    const doctor::Machine machine = {
        .device = backend->info(),
        .bandwidth = bandwidth_of(*backend, sample),
        .memory = system_memory().obtainable,
        .has = [&](const std::string& name) { return catalogue.look_up_stored(name).is_complete(); }};
    const auto models = doctor::recommend(hub::aliases(), machine);
    findings.push_back(doctor::finding_of(models, machine));
    return doctor::described(models);
  } catch (const Error& error) {
    findings.push_back({.check = "models", .summary = fmt::format("not estimated: {}", error.what())});
    return "";
  }
}

void run(const Options& options) {
  const doctor::Sources sources = gather(required(options.device));
  auto findings = doctor::examine(sources);
  const DeviceOptions device = {.device = options.device};
  if (options.self_test) findings.push_back(doctor::check_device(device, sources.environment));
  const std::string recommendation = add_recommendation(findings, device, sources.environment);
  std::fputs((options.json ? doctor::as_json(findings) : doctor::as_table(findings) + recommendation).c_str(),
             stdout);
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
  command
      .option(
          "--device", options->device,
          "auto, cpu, cuda or cuda:N: the device that must work; with cuda, the lack of a usable GPU is an "
          "error (exit code 7)")
      .check(device_problem)
      .shows_default();
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
