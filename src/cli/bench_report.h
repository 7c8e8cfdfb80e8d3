// The result of `bench`, printed for people (a markdown table), for programs (JSON) and for spreadsheets
// (CSV).
#pragma once

#include <string>
#include <vector>

#include "cli/measure.h"

namespace inferno {

struct BenchReport {
  std::string model, weights, device, kernels, version;
  int threads = 0;
  std::uint64_t weight_bytes = 0, token_bytes = 0, parameters = 0;
  double load_seconds = 0.0;
  double bandwidth_one_thread = 0.0,
         bandwidth = 0.0;  // bytes/s read; the second with all threads; 0 unmeasured
  std::vector<Measurement> rows;
  std::vector<std::string> notes;
};

std::string as_markdown(const BenchReport& report);
std::string as_json(const BenchReport& report);
std::string as_csv(const BenchReport& report);

}  // namespace inferno
