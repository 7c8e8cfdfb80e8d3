// `inferno bench --constrain FILE`: what compiling constraints and computing masks costs with a model's
// vocabulary, on one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/constrain/cases.h"

namespace inferno::constrain {

struct Report {
  std::string model, host, version, commit, command, date;
  int vocabulary = 0;  // tokens
  int repeat = 1;
  double build_ms = 0.0;   // of the vocabulary's trie
  std::int64_t cases = 0;  // refused ones included
  std::int64_t refused = 0;
  std::int64_t ended = 0;  // texts that could not be followed within the limits
  std::int64_t tokens = 0, forced = 0;
  std::vector<double> compile_ms, masks_us;
  std::string slowest_compile, slowest_mask;  // ids of cases, as JSON
};

// Compiles the cases of a file one after the other and follows their texts, each case `repeat` times from the
// beginning; each time is the median of its runs. Fills the figures of the report.
void measure_constraints(Report& report, const Settings& settings, std::string_view lines, int repeat);

std::string as_markdown(const Report& report);
nlohmann::ordered_json as_json(const Report& report);

}  // namespace inferno::constrain
