// Linked into the programs with the label `gpu`: without a usable GPU their tests are skipped with a message.
// INFERNO_REQUIRE_GPU=1 turns that into a failure.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backend/backend.h"

namespace inferno {
namespace {

class NeedsGpu : public testing::Environment {
 public:
  void SetUp() override {
    if (cuda_is_usable()) return;
    constexpr int skipped = 77, failed = 1;
    std::puts("there is no usable GPU: see `inferno doctor`");
    std::exit(std::getenv("INFERNO_REQUIRE_GPU") != nullptr ? failed : skipped);
  }
};

const testing::Environment* const needs_gpu = testing::AddGlobalTestEnvironment(new NeedsGpu);

}  // namespace
}  // namespace inferno
