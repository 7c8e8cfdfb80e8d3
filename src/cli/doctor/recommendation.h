// The end of `inferno doctor`: what this machine is good for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cli/doctor/doctor.h"
#include "hub/names/aliases.h"

namespace inferno::doctor {

struct Recommendation {
  std::string name;   // an alias: `inferno play NAME`
  std::string model;  // what it means on this machine
  std::uint64_t bytes = 0;
  std::uint64_t original_bytes = 0;  // before it was quantized: how capable a model is, roughly
  double tokens_per_second = 0.0;
  bool is_here = false;  // nothing has to be downloaded
};

struct Machine {
  DeviceInfo device;         // where models run
  double bandwidth = 0.0;    // bytes/s, measured
  std::uint64_t memory = 0;  // of the system, which decides what an alias means
  std::function<bool(const std::string& name)> has = [](const std::string&) { return false; };
};

// Up to three models that fit, the most capable first: the most capable that are still fluent, fast and
// instant, where such models exist.
std::vector<Recommendation> recommend(std::span<const hub::Alias> aliases, const Machine& machine);

// The facts for --json, and a line for the table.
Finding finding_of(const std::vector<Recommendation>& models, const Machine& machine);

// The text below the table, with the command for each model.
std::string described(const std::vector<Recommendation>& models);

}  // namespace inferno::doctor
