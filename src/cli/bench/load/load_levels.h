// What `inferno bench --serve` and `--load` have in common: the loads that are put on a target one after the
// other, and the report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/load/load_run.h"

namespace inferno::load {

struct LoadOptions {
  std::vector<int> concurrency = {1};  // closed loop; with a rate or a trace the first limits the streams
  bool limits_streams = false;         // concurrency was given
  std::vector<double> rates = {};      // requests/s with Poisson arrivals; infinite: all at once
  std::string trace = {};              // a file
  double speedup = 1.0;                // of the trace
  int requests = 0;                    // of each run; 0: chosen, or the whole trace
  int input_tokens = 128, output_tokens = 64, shared_prefix = 0;
  float temperature = 0.0f;
  std::optional<std::uint64_t> seed = {};
  bool json = false;
  std::filesystem::path plot = {};
};

// One load.
struct Level {
  std::string name;
  double value = 0.0;
  int max_streams = 0;
  std::vector<PlannedRequest> plan;
};

// Random, unless the options set it. Prompts that were sent before would be found in the prefix cache, so
// that each test has its own.
std::uint64_t seed_of(const LoadOptions& options);

std::vector<Level> levels(const LoadOptions& options, std::uint64_t seed);
// Takes requests out of a trace that exceed `context`, because they would only count as failures, and says
// so. Error{invalid_request} if none is left.
void leave_out_long(std::vector<Level>& levels, int context);

// What the loads are put on, for the report.
struct Subject {
  std::string title;            // of a plot
  nlohmann::ordered_json json;  // at the start of the results
  // The target of a level whose first request has this number among those of all levels.
  std::function<std::unique_ptr<Target>(const Level& level, std::uint64_t first_number)> target;
  // Called around each level; may add to its summary.
  std::function<void()> before = [] {};
  std::function<void(LoadSummary& summary)> after = [](LoadSummary&) {};
};

// Puts all loads on the target and prints the results on stdout. Exit{1} if no request succeeded.
void run_levels(const LoadOptions& options, const std::vector<Level>& levels, std::uint64_t seed,
                const Subject& subject);

}  // namespace inferno::load
