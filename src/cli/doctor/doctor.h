// What `inferno doctor` looks at: each check turns facts about this machine into one finding, in words and as
// data. Checks never throw for what they find; a fact that cannot be learned is a finding too.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/probe.h"
#include "cli/describe_spec.h"
#include "cli/environment.h"

namespace inferno::doctor {

enum class Verdict { ok, warn, fail };

struct Finding {
  std::string check;  // "cpu", "gpu 0"
  Verdict verdict = Verdict::ok;
  std::string summary = {};  // one line
  std::string next = {};     // what to do; empty when nothing need be done
  Json facts = {};           // the same, for programs
};

enum class Device { any, cpu, cuda };  // what must work; `any` is content with the CPU

struct Sources {
  Environment environment;
  std::filesystem::path root = "/";  // of /proc and /sys
  cuda::GpuProbe gpus;
  cuda::ProbeSources gpu_sources;
  cuda::CudaBuild build;
  Device required = Device::any;
  // Computes something on a device that seems usable; what went wrong, or nullopt. Empty: not tried.
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

// One line for each finding, a second with what to do, and a last one that counts.
std::string as_table(const std::vector<Finding>& findings);
std::string as_json(const std::vector<Finding>& findings);

int count(const std::vector<Finding>& findings, Verdict verdict);

}  // namespace inferno::doctor
