#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace inferno {
namespace {

struct Order {
  SequenceId id = 0;
  int prompt = 1;
  int answer = 8;
  std::string client = {};
};

std::unique_ptr<Sequence> sequence(const Order& order) {
  auto out = std::make_unique<Sequence>();
  out->id = order.id;
  for (int i = 0; i < order.prompt; ++i) out->tokens.push_back(static_cast<int>(order.id) * 1000 + i);
  out->prompt_tokens = order.prompt;
  out->max_tokens = order.prompt + order.answer;
  out->client = order.client;
  return out;
}

// A scheduler whose model answers 7 to everything.
class Scene {
 public:
  Scene(const SchedulerLimits& limits, const std::vector<CacheGroup>& groups, bool prefix_cache = false)
      : scheduler(limits, KvBlocks(groups, 4, prefix_cache)) {}

  void add(const Order& order) {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(sequence(order));
    scheduler.add(std::move(one));
  }

  // The ids of a step's slices and how many tokens each had.
  std::vector<std::pair<SequenceId, int>> step() {
    const StepPlan plan = scheduler.next();
    std::vector<std::pair<SequenceId, int>> out;
    std::vector<TokenId> tokens;
    for (const Slice& slice : plan.slices) {
      out.emplace_back(slice.sequence->id, slice.tokens);
      if (slice.wants_logits) tokens.push_back(7);
    }
    copies += static_cast<int>(plan.copies.size());
    scheduler.commit(plan, tokens);
    return out;
  }
  int run() {
    int steps = 0;
    while (!step().empty()) ++steps;
    return steps;
  }

  Scheduler scheduler;
  int copies = 0;
};

using Slices = std::vector<std::pair<SequenceId, int>>;

TEST(Scheduler, PlacesDecodesBeforePrompts) {
  Scene scene({.max_sequences = 4, .max_step_tokens = 8, .max_prompt_tokens = 5}, {{0, 100}});
  scene.add({.id = 1, .prompt = 3});
  EXPECT_EQ(scene.step(), (Slices{{1, 3}}));
  scene.add({.id = 2, .prompt = 12});
  EXPECT_EQ(scene.step(), (Slices{{1, 1}, {2, 5}}));
  EXPECT_EQ(scene.step(), (Slices{{1, 1}, {2, 5}}));
  EXPECT_EQ(scene.step(), (Slices{{1, 1}, {2, 2}}));
  EXPECT_EQ(scene.step(), (Slices{{1, 1}, {2, 1}}));
}

TEST(Scheduler, UsesTheWholeBudgetWhenNobodyWrites) {
  Scene scene({.max_sequences = 4, .max_step_tokens = 8, .max_prompt_tokens = 2}, {{0, 100}});
  scene.add({.id = 1, .prompt = 20});
  EXPECT_EQ(scene.step(), (Slices{{1, 8}}));
}

TEST(Scheduler, SharesThePromptBudgetBetweenClients) {
  Scene scene({.max_sequences = 4, .max_step_tokens = 8, .max_prompt_tokens = 8}, {{0, 100}});
  scene.add({.id = 1, .prompt = 40, .client = "long"});
  scene.step();
  scene.add({.id = 2, .prompt = 6, .client = "short"});
  scene.add({.id = 3, .prompt = 40, .client = "long"});
  EXPECT_EQ(scene.step(), (Slices{{1, 4}, {2, 4}}));
  EXPECT_EQ(scene.step(), (Slices{{1, 6}, {2, 2}}));  // what one does not need goes to the oldest
}

TEST(Scheduler, LetsClientsTakeTurns) {
  Scene scene({.max_sequences = 1, .max_step_tokens = 8, .max_prompt_tokens = 8}, {{0, 100}});
  for (SequenceId id = 1; id <= 3; ++id) scene.add({.id = id, .prompt = 2, .answer = 1, .client = "many"});
  scene.add({.id = 4, .prompt = 2, .answer = 1, .client = "one"});
  std::vector<SequenceId> order;
  for (int i = 0; i < 4; ++i) order.push_back(scene.step()[0].first);
  EXPECT_EQ(order, (std::vector<SequenceId>{1, 4, 2, 3}));
}

TEST(Scheduler, PreemptsTheYoungestWhenBlocksRunOut) {
  Scene scene({.max_sequences = 4, .max_step_tokens = 8, .max_prompt_tokens = 8}, {{0, 3}});
  scene.add({.id = 1, .prompt = 4, .answer = 8});
  scene.add({.id = 2, .prompt = 3, .answer = 4});
  scene.step();
  EXPECT_EQ(scene.scheduler.running(), 2);
  while (scene.scheduler.preemptions() == 0) ASSERT_FALSE(scene.step().empty());
  EXPECT_EQ(scene.scheduler.find(2)->is_running, false);
  scene.run();
  EXPECT_EQ(scene.scheduler.find(1), nullptr);
  EXPECT_EQ(scene.scheduler.find(2), nullptr);
  EXPECT_EQ(scene.scheduler.blocks().free_blocks(), 3);
}

TEST(Scheduler, GivesBackBlocksThatSlideOutOfTheWindow) {
  // Two groups: everything and the last 8 tokens, in blocks of 4.
  Scene scene({.max_sequences = 1, .max_step_tokens = 4, .max_prompt_tokens = 4}, {{0, 100}, {8, 4}});
  scene.add({.id = 1, .prompt = 40, .answer = 20});
  int least = 4;
  while (!scene.step().empty()) least = std::min(least, scene.scheduler.blocks().pool(1).free_blocks());
  EXPECT_LE(least, 1);
  EXPECT_EQ(scene.scheduler.blocks().free_blocks(), 104);
}

TEST(Scheduler, FindsAPrefixInGroupsOfBothKinds) {
  Scene scene({.max_sequences = 1, .max_step_tokens = 64, .max_prompt_tokens = 64}, {{0, 100}, {8, 100}},
              true);
  scene.add({.id = 1, .prompt = 33, .answer = 1});
  scene.run();
  auto same = sequence({.id = 1, .prompt = 33, .answer = 1});
  same->id = 2;
  same->tokens[30] = 5;  // the match ends in the eighth block
  std::vector<std::unique_ptr<Sequence>> one;
  one.push_back(std::move(same));
  scene.scheduler.add(std::move(one));
  EXPECT_EQ(scene.step(), (Slices{{2, 33 - 28}}));
}

TEST(Scheduler, KeepsScopesApart) {
  Scene scene({.max_sequences = 1, .max_step_tokens = 64, .max_prompt_tokens = 64}, {{0, 100}}, true);
  scene.add({.id = 1, .prompt = 33, .answer = 1});
  scene.run();
  auto stranger = sequence({.id = 1, .prompt = 33, .answer = 1});
  stranger->id = 2;
  stranger->scope = "stranger";
  std::vector<std::unique_ptr<Sequence>> one;
  one.push_back(std::move(stranger));
  scene.scheduler.add(std::move(one));
  EXPECT_EQ(scene.step(), (Slices{{2, 33}}));
}

TEST(Scheduler, SharesThePromptOfSeveralChoicesAndCopiesOnWrite) {
  Scene scene({.max_sequences = 4, .max_step_tokens = 64, .max_prompt_tokens = 64}, {{0, 100}});
  std::vector<std::unique_ptr<Sequence>> choices;
  for (SequenceId id = 1; id <= 3; ++id) {
    choices.push_back(sequence({.id = 1, .prompt = 10, .answer = 3}));
    choices.back()->id = id;
  }
  scene.scheduler.add(std::move(choices));
  EXPECT_EQ(scene.step(), (Slices{{1, 10}}));
  EXPECT_EQ(scene.scheduler.blocks().free_blocks(), 97);  // shared, nothing copied yet
  EXPECT_EQ(scene.step(), (Slices{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(scene.copies, 2);  // the last owner of a block keeps it
  EXPECT_EQ(scene.scheduler.blocks().free_blocks(), 95);
  scene.run();
  EXPECT_EQ(scene.scheduler.blocks().free_blocks(), 100);
}

TEST(Scheduler, PlansAheadUntilAnAnswerIsFull) {
  Scene scene({.max_sequences = 2, .max_step_tokens = 8, .max_prompt_tokens = 5}, {{0, 100}});
  scene.add({.id = 1, .prompt = 3, .answer = 4});
  scene.step();
  const TokenId token[] = {7};
  const StepPlan plan = scene.scheduler.next();
  const std::optional<StepPlan> ahead = scene.scheduler.plan_ahead(plan);
  ASSERT_TRUE(ahead.has_value());
  ASSERT_EQ(ahead->slices.size(), 1u);
  EXPECT_EQ(ahead->slices[0].tokens, 1);
  EXPECT_FALSE(scene.scheduler.commit(plan, token)[0].finished.has_value());
  EXPECT_FALSE(scene.scheduler.commit(*ahead, token)[0].finished.has_value());
  const StepPlan last = scene.scheduler.next();
  EXPECT_FALSE(scene.scheduler.plan_ahead(last).has_value());
  EXPECT_EQ(scene.scheduler.commit(last, token)[0].finished, FinishReason::length);
}

// A slice of a plan ahead: id, first position, tokens, and the row that gives its token.
using Ahead = std::vector<std::tuple<SequenceId, int, int, int>>;

Ahead slices_of(const std::optional<StepPlan>& plan) {
  Ahead out;
  if (!plan) return out;
  for (const Slice& slice : plan->slices) {
    out.emplace_back(slice.id, slice.start, slice.tokens, slice.source);
  }
  return out;
}

TEST(Scheduler, PlansAheadThroughPromptsAdmissionsAndFullAnswers) {
  constexpr int known = Sequence::no_row;
  Scene scene({.max_sequences = 3, .max_step_tokens = 8, .max_prompt_tokens = 5}, {{0, 100}});
  scene.add({.id = 1, .prompt = 3, .answer = 4});
  const StepPlan first = scene.scheduler.next();
  auto second = scene.scheduler.plan_ahead(first);
  EXPECT_EQ(slices_of(second), (Ahead{{1, 3, 1, 0}})) << "its first token comes with its prompt";
  scene.scheduler.commit(first, std::vector<TokenId>{7});
  scene.add({.id = 2, .prompt = 7});
  const auto third = scene.scheduler.plan_ahead(*second);
  EXPECT_EQ(slices_of(third), (Ahead{{1, 4, 1, 0}, {2, 0, 5, known}}));
  scene.scheduler.commit(*second, std::vector<TokenId>{7});
  const auto fourth = scene.scheduler.plan_ahead(*third);
  EXPECT_EQ(slices_of(fourth), (Ahead{{1, 5, 1, 0}, {2, 5, 2, known}}));
  scene.scheduler.commit(*third, std::vector<TokenId>{7});
  const auto fifth = scene.scheduler.plan_ahead(*fourth);
  EXPECT_EQ(slices_of(fifth), (Ahead{{2, 7, 1, 1}})) << "the first answer is full";
  const std::vector<Progress> progress = scene.scheduler.commit(*fourth, std::vector<TokenId>{7, 7});
  EXPECT_EQ(progress.at(0).finished, FinishReason::length);
  EXPECT_EQ(scene.scheduler.running(), 1);
  scene.scheduler.commit(*fifth, std::vector<TokenId>{7});
}

TEST(Scheduler, CountsTheRowsOfRemovedSequencesInAPlanAhead) {
  Scene scene({.max_sequences = 3, .max_step_tokens = 8, .max_prompt_tokens = 5}, {{0, 100}});
  scene.add({.id = 1, .prompt = 3});
  scene.add({.id = 2, .prompt = 3});
  scene.step();
  StepPlan plan = scene.scheduler.next();
  scene.scheduler.remove(1);
  plan.slices[0].sequence = nullptr;
  EXPECT_EQ(slices_of(scene.scheduler.plan_ahead(plan)), (Ahead{{2, 4, 1, 1}}));
}

// The blocks that slid out of a window become free when the first chunk is committed.
TEST(Scheduler, CutsNoPromptShortAhead) {
  Scene scene({.max_sequences = 1, .max_step_tokens = 16, .max_prompt_tokens = 16}, {{0, 100}, {4, 6}});
  scene.add({.id = 1, .prompt = 40});
  const StepPlan plan = scene.scheduler.next();
  EXPECT_EQ(plan.slices.at(0).tokens, 16);
  EXPECT_FALSE(scene.scheduler.plan_ahead(plan).has_value());
  scene.scheduler.commit(plan, {});
  EXPECT_EQ(scene.step(), (Slices{{1, 16}}));
}

TEST(Scheduler, PlansNothingAheadOfForksOrWithoutBlocks) {
  Scene forks({.max_sequences = 4, .max_step_tokens = 8, .max_prompt_tokens = 5}, {{0, 100}});
  std::vector<std::unique_ptr<Sequence>> choices;
  for (const SequenceId id : {SequenceId{1}, SequenceId{2}}) choices.push_back(sequence({.id = id}));
  forks.scheduler.add(std::move(choices));
  EXPECT_FALSE(forks.scheduler.plan_ahead(forks.scheduler.next()).has_value());

  Scene full({.max_sequences = 1, .max_step_tokens = 8, .max_prompt_tokens = 8}, {{0, 2}});
  full.add({.id = 1, .prompt = 7});
  full.step();
  EXPECT_FALSE(full.scheduler.plan_ahead(full.scheduler.next()).has_value())
      << "the eighth fills the last block";
}

// The plan ahead is dropped because the third prompt would be cut short. Until the second one is planned
// again, the first, which begins alike, is computed.
TEST(Scheduler, LooksForPrefixesAgainAfterAPlanAheadIsDropped) {
  Scene scene({.max_sequences = 3, .max_step_tokens = 32, .max_prompt_tokens = 32}, {{0, 100}, {4, 9}},
              /*prefix_cache=*/true);
  scene.add({.id = 1, .prompt = 9});
  const StepPlan first = scene.scheduler.next();
  EXPECT_EQ(slices_of(first), (Ahead{{1, 0, 9, Sequence::no_row}}));
  std::vector<std::unique_ptr<Sequence>> alike;
  alike.push_back(sequence({.id = 1, .prompt = 9}));
  alike.back()->id = 2;
  scene.scheduler.add(std::move(alike));
  scene.add({.id = 3, .prompt = 24});
  EXPECT_FALSE(scene.scheduler.plan_ahead(first).has_value());
  EXPECT_EQ(scene.scheduler.running(), 3);
  EXPECT_FALSE(scene.scheduler.find(2)->was_scheduled);
  scene.scheduler.commit(first, std::vector<TokenId>{7});
  scene.step();
  EXPECT_EQ(scene.scheduler.find(2)->cached, 8);
}

TEST(BlockPool, ForgetsTheLeastRecentlyUsedFirst) {
  BlockPool pool(3);
  for (BlockId block = 0; block < 3; ++block) {
    EXPECT_EQ(pool.take()->block, block);
    pool.cache(block);
  }
  pool.release(1);
  pool.release(0);
  pool.release(2);
  pool.share(1);  // used again
  pool.release(1);
  EXPECT_EQ(pool.free_blocks(), 3);
  for (const BlockId expected : {0, 2, 1}) {
    const auto taken = pool.take();
    EXPECT_EQ(taken->block, expected);
    EXPECT_TRUE(taken->evicted);
  }
  EXPECT_FALSE(pool.take().has_value());
}

}  // namespace
}  // namespace inferno
