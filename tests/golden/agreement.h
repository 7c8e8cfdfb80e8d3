// Compares a model with its golden file: logits within the tolerance, greedy tokens equal.
#pragma once

#include <filesystem>
#include <string>

namespace inferno::testing {

struct GoldenModel {
  std::string name;
  std::filesystem::path path, golden;
  double tolerance;
};

// Reports through GoogleTest.
void expect_agreement(const GoldenModel& model);

}  // namespace inferno::testing
