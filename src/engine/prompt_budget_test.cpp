#include "engine/prompt_budget.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(PromptBudget, ShrinksInProportionToASlowStep) {
  PromptBudget budget(1024, 0.04);
  EXPECT_EQ(budget.rows(), 1024);
  budget.note(1024, 0.08);
  EXPECT_EQ(budget.rows(), 512);
  budget.note(512, 100.0);
  EXPECT_EQ(budget.rows(), 256) << "prompts must get done, too";
}

TEST(PromptBudget, GrowsWhileStepsAreFast) {
  PromptBudget budget(1024, 0.04);
  budget.note(1024, 0.4);
  EXPECT_EQ(budget.rows(), 256);
  budget.note(256, 0.01);
  EXPECT_EQ(budget.rows(), 320);
  budget.note(50, 0.01);
  EXPECT_EQ(budget.rows(), 320) << "a step that did not use all of it shows nothing";
  budget.note(320, 0.039);
  EXPECT_EQ(budget.rows(), 320) << "close to the limit";
  for (int i = 0; i < 20; ++i) budget.note(budget.rows(), 0.01);
  EXPECT_EQ(budget.rows(), 1024);
}

TEST(PromptBudget, StaysWithoutALimit) {
  PromptBudget budget(256, 0.0);
  budget.note(256, 10.0);
  EXPECT_EQ(budget.rows(), 256);
}

}  // namespace
}  // namespace inferno
