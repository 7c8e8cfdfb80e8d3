// Reference results as the golden files hold them, read with code that shares nothing with the loader under
// test.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/token.h"

namespace inferno::testing {

struct GoldenCase {
  std::string name;
  std::vector<TokenId> ids;
  int rows = 0;                                             // logits of the last `rows` tokens
  std::vector<float> logits;                                // [rows, vocab]
  std::map<std::string, std::vector<float>> cached_logits;  // with a rounded KV cache, by its type
  std::vector<TokenId> greedy;
  double min_margin = 0.0;  // smallest distance between the best and the second logit while generating
};

// `file` is NAME.safetensors; NAME.json next to it may add the margins.
std::vector<GoldenCase> read_golden(const std::filesystem::path& file);

// ‖actual − expected‖ / ‖expected‖; infinite if sizes differ or a value is not finite.
double relative_error(const std::vector<float>& actual, const std::vector<float>& expected);
double largest_error(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace inferno::testing
