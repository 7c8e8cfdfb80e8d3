// The result of `bench` as a markdown table, JSON, CSV and an SVG plot.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace inferno {

struct BenchReport {
  std::string model, weights, device, kernels, version;
  std::string commit, command, date, host;  // the origin of a stored result; host is the CPU
  int threads = 0;
  std::uint64_t weight_bytes = 0, token_bytes = 0, parameters = 0;
  double load_seconds = 0.0;
  double bandwidth_one_thread = 0.0;  // bytes/s read; 0 if not measured
  double bandwidth = 0.0;             // the same with all threads
  std::vector<Measurement> rows;
  std::vector<std::string> notes;
  std::vector<Conversion> conversions;
};

// Time of a decoding step (one token of each sequence) or of a whole prompt.
double milliseconds(const Measurement& row);
// Tokens/s at which this test would read memory at the measured bandwidth; 0 for prompts, which are limited
// by arithmetic.
double roofline(const BenchReport& report, const Measurement& row);

std::string as_markdown(const BenchReport& report);
std::string as_json(const BenchReport& report);
std::string as_csv(const BenchReport& report);
// An SVG document for light and dark pages: throughput by batch size and decoding by depth, one panel each.
// Panels without data are left out.
std::string as_svg(const BenchReport& report);

}  // namespace inferno
