// The result of `bench`, printed for people (a markdown table), for programs (JSON) and for spreadsheets
// (CSV).
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace inferno {

struct BenchReport {
  std::string model, weights, device, kernels, version;
  std::string commit, command, date, host;  // where a kept result comes from; host is the CPU
  int threads = 0;
  std::uint64_t weight_bytes = 0, token_bytes = 0, parameters = 0;
  double load_seconds = 0.0;
  double bandwidth_one_thread = 0.0,
         bandwidth = 0.0;  // bytes/s read; the second with all threads; 0 unmeasured
  std::vector<Measurement> rows;
  std::vector<std::string> notes;
  std::vector<Conversion> conversions;
};

// Milliseconds of a step that decodes a token of each sequence, or of a whole prompt.
double milliseconds(const Measurement& row);
// Tokens/s at which this test would read memory as fast as was measured; 0 where that is not the limit.
double roofline(const BenchReport& report, const Measurement& row);

std::string as_markdown(const BenchReport& report);
std::string as_json(const BenchReport& report);
std::string as_csv(const BenchReport& report);

}  // namespace inferno
