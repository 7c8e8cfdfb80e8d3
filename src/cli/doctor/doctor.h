// The checks of `inferno doctor`: each turns facts about this machine into a finding, in words and as JSON.
// Checks do not throw; a fact that cannot be determined is a finding too.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/probe.h"
#include "cli/environment.h"

namespace inferno::doctor {

enum class Verdict { ok, warn, fail };

struct Finding {
  std::string check;  // "cpu", "gpu 0"
  Verdict verdict = Verdict::ok;
  std::string summary = {};  // one line
  std::string next = {};     // what to do; empty if nothing has to be done
  std::string facts = "{}";  // a JSON object
};

enum class Device { any, cpu, cuda };  // what must work; with `any` the CPU is enough

struct Sources {
  Environment environment;
  std::filesystem::path root = "/";  // of /proc and /sys
  cuda::GpuProbe gpus;
  cuda::ProbeSources gpu_sources;
  cuda::CudaBuild build;
  Device required = Device::any;
  // Runs kernels on a device that seems usable and returns what went wrong. May be empty: not tested.
  std::function<std::optional<std::string>(int device)> self_test = {};
};

Finding examine_program();
Finding examine_cpu();
Finding examine_memory(const Sources& sources);
std::vector<Finding> examine_gpus(const Sources& sources);
Finding examine_cache(const Sources& sources);
Finding examine_settings(const Sources& sources);

// All of the above, in the order they are shown.
std::vector<Finding> examine(const Sources& sources);

// One line for each finding, a second one with what to do, and the number of warnings and errors.
std::string as_table(const std::vector<Finding>& findings);
std::string as_json(const std::vector<Finding>& findings);

int count(const std::vector<Finding>& findings, Verdict verdict);

}  // namespace inferno::doctor
