// The scheduler and its blocks against a model: a cache whose rows record what was written to them. In a
// million random operations no sequence reads a row that is not its own prefix, no block is lost or owned
// twice, and every sequence gets its turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/scheduler.h"
#include "support/host_matrix.h"

namespace inferno::testing {
namespace {

constexpr int block_size = 4;
constexpr int vocab = 3;  // few, so that prefixes coincide

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 31;
}

// What the "model" writes to the cache at a position: a number for the scope and all tokens up to it.
std::vector<std::uint64_t> history(const Sequence& sequence) {
  std::uint64_t hash = 1;
  for (const char letter : sequence.scope) hash = mix(hash, static_cast<unsigned char>(letter));
  std::vector<std::uint64_t> out;
  for (const TokenId token : sequence.tokens) {
    out.push_back(hash = mix(hash, static_cast<std::uint64_t>(token) + 1));
  }
  return out;
}

class ModelTest {
 public:
  ModelTest(std::uint64_t seed, const SchedulerLimits& limits, std::vector<CacheGroup> groups,
            bool prefix_cache)
      : random_(seed),
        limits_(limits),
        groups_(groups),
        scheduler_(limits, KvBlocks(groups, block_size, prefix_cache)) {
    for (const CacheGroup& group : groups) {
      rows_.emplace_back(static_cast<std::size_t>(group.blocks * block_size));
    }
    longest_ = groups[0].blocks * block_size;
  }

  void operate() {
    const int choice = random_.below(10);
    if (choice == 0 && alive_.size() < 40) {
      add();
    } else if (choice == 1 && random_.below(4) == 0 && !alive_.empty()) {
      cancel();
    } else {
      step();
    }
    check_owners();
  }
  void drain() {
    while (!alive_.empty() && !::testing::Test::HasFailure()) step();
    check_owners();
    EXPECT_EQ(scheduler_.blocks().free_blocks(), scheduler_.blocks().blocks());
  }
  std::uint64_t preemptions() const { return scheduler_.preemptions(); }
  std::uint64_t copies() const { return copies_; }
  std::uint64_t found() const { return found_; }
  std::uint64_t ahead() const { return ahead_; }
  std::uint64_t prompts_ahead() const { return prompts_ahead_; }

 private:
  struct Alive {
    std::vector<SequenceId> siblings;
    std::uint64_t since = 0;
  };

  void add() {
    std::vector<std::unique_ptr<Sequence>> choices;
    const int prompt = 1 + random_.below(random_.below(5) == 0 ? longest_ - 2 : 16);
    const int answer = 1 + random_.below(std::min(20, longest_ - prompt));
    std::vector<TokenId> tokens;
    for (int i = 0; i < prompt; ++i) tokens.push_back(random_.below(i < 8 ? 1 : vocab));
    const std::string client = std::to_string(random_.below(3)), scope = std::to_string(random_.below(2));
    std::vector<SequenceId> ids;
    const int count = random_.below(4) == 0 ? 1 + random_.below(4) : 1;
    const bool is_scored = random_.below(16) == 0;
    for (int i = 0; i < count; ++i) {
      auto sequence = std::make_unique<Sequence>();
      sequence->id = next_id_++;
      sequence->tokens = tokens;
      sequence->prompt_tokens = prompt;
      sequence->max_tokens = prompt + answer;
      sequence->client = client;
      sequence->scope = scope;
      sequence->wants_prompt_logits = is_scored && i == 0;
      sequence->reuse_prefix = !is_scored;
      ids.push_back(sequence->id);
      choices.push_back(std::move(sequence));
    }
    for (const SequenceId id : ids) alive_[id] = {ids, steps_};
    scheduler_.add(std::move(choices));
  }

  void cancel() {
    auto at = alive_.begin();
    std::advance(at, random_.below(static_cast<int>(alive_.size())));
    for (const SequenceId id : std::vector<SequenceId>(at->second.siblings)) {
      scheduler_.remove(id);
      alive_.erase(id);
    }
  }

  void step() {
    std::set<const Sequence*> writing;
    for (const Sequence* sequence : scheduler_.running_sequences()) {
      if (sequence->remaining() == 1) writing.insert(sequence);
    }
    const std::uint64_t preempted = scheduler_.preemptions();
    StepPlan plan = scheduler_.next();
    if (scheduler_.preemptions() != preempted) writing.clear();  // they may be back as prompts
    ASSERT_EQ(plan.slices.empty(), alive_.empty()) << "sequences wait and none is scheduled";
    check_plan(plan, writing);
    while (!plan.slices.empty() && !::testing::Test::HasFailure()) {
      // Everything of the plan ahead but its tokens is settled before the first one is committed.
      std::optional<StepPlan> ahead = random_.below(2) == 0 ? scheduler_.plan_ahead(plan) : std::nullopt;
      if (ahead) {
        ++ahead_;
        check_ahead(*ahead, plan);
      }
      std::vector<std::vector<std::vector<BlockId>>> tables;  // as they were queued
      for (const Slice& slice : ahead ? ahead->slices : std::vector<Slice>()) {
        tables.push_back(slice.sequence->blocks);
      }
      carry_out(plan);
      if (ahead && random_.below(8) == 0) cancel();
      plan = {};
      for (std::size_t i = 0; i < tables.size(); ++i) {
        const Slice& slice = ahead->slices[i];
        if (scheduler_.find(slice.id) == nullptr) {  // it still writes to what it held
          for (int row = 0; row < slice.tokens; ++row) scribble(tables[i], slice.start + row);
          continue;
        }
        ASSERT_EQ(slice.sequence->computed, slice.start);
        check_table(tables[i], *slice.sequence);
        plan.slices.push_back(slice);
      }
    }
  }

  // Makes the step's copies, computes its slices and commits it.
  void carry_out(const StepPlan& plan) {
    for (const BlockCopy& copy : plan.copies) {
      ++copies_;
      for (int row = 0; row < copy.rows; ++row) {
        at(copy.group, copy.to, row) = at(copy.group, copy.from, row);
      }
    }
    std::vector<TokenId> tokens;
    for (const Slice& slice : plan.slices) {
      compute(slice);
      // The next token depends on everything before it.
      if (slice.wants_logits) tokens.push_back(static_cast<TokenId>(history(*slice.sequence).back() % vocab));
    }
    for (const Progress& progress : scheduler_.commit(plan, tokens)) {
      if (progress.finished) alive_.erase(progress.id);
    }
    ++steps_;
    for (const auto& [id, alive] : alive_) ASSERT_LT(steps_ - alive.since, 20000u) << "starved";
  }

  void check_plan(const StepPlan& plan, const std::set<const Sequence*>& writing) {
    int rows = 0, prompt_rows = 0, decodes = 0, logit_rows = 0;
    std::set<const Sequence*> seen;
    for (const Slice& slice : plan.slices) {
      rows += slice.tokens;
      ASSERT_GT(slice.tokens, 0);
      ASSERT_TRUE(seen.insert(slice.sequence).second) << "twice in a step";
      (writing.contains(slice.sequence) ? decodes : prompt_rows) += slice.tokens;
      ASSERT_EQ(slice.wants_logits, slice.tokens == slice.sequence->remaining());
      logit_rows += slice.scored + (slice.wants_logits ? 1 : 0);
      if (slice.sequence->is_prompt_scored()) {
        ASSERT_EQ(slice.scored + (slice.wants_logits ? 1 : 0), slice.tokens);
        ASSERT_EQ(slice.sequence->cached, 0);
      }
      if (slice.sequence->cached > 0) ++found_;
    }
    ASSERT_LE(rows, limits_.max_step_tokens);
    ASSERT_LE(static_cast<int>(plan.slices.size()), limits_.max_sequences);
    ASSERT_LE(logit_rows, limits_.max_sequences);
    ASSERT_TRUE(decodes == 0 || prompt_rows <= limits_.max_prompt_tokens);
  }

  // Tokens of a plan ahead are known, or are those that the plan before samples in the row named.
  void check_ahead(const StepPlan& ahead, const StepPlan& before) {
    std::vector<SequenceId> sampled;
    for (const Slice& slice : before.slices) {
      if (slice.wants_logits) sampled.push_back(slice.id);
    }
    ASSERT_TRUE(ahead.copies.empty());
    int rows = 0, prompt_rows = 0, logit_rows = 0;
    std::set<SequenceId> seen;
    for (const Slice& slice : ahead.slices) {
      ASSERT_GT(slice.tokens, 0);
      ASSERT_TRUE(seen.insert(slice.id).second) << "twice in a step";
      rows += slice.tokens;
      prompt_rows += slice.tokens == 1 ? 0 : slice.tokens;
      logit_rows += slice.logit_rows();
      if (slice.source == Sequence::no_row) {
        ASSERT_LE(slice.start + slice.tokens, static_cast<int>(slice.sequence->tokens.size()));
        prompts_ahead_ += slice.tokens > 1 ? 1 : 0;
      } else {
        ASSERT_EQ(sampled.at(static_cast<std::size_t>(slice.source)), slice.id);
        ASSERT_EQ(slice.start, static_cast<int>(slice.sequence->tokens.size()));
        ASSERT_LT(slice.start + 1, slice.sequence->max_tokens) << "its answer is full";
      }
    }
    ASSERT_LE(rows, limits_.max_step_tokens);
    ASSERT_LE(static_cast<int>(ahead.slices.size()), limits_.max_sequences);
    ASSERT_LE(logit_rows, limits_.max_sequences);
    const bool has_decode =
        std::ranges::any_of(ahead.slices, [](const Slice& one) { return one.source != Sequence::no_row; });
    ASSERT_TRUE(!has_decode || prompt_rows <= limits_.max_prompt_tokens);
  }

  // A step that was queued for a removed sequence writes one more row before any other sequence writes.
  void scribble(const std::vector<std::vector<BlockId>>& blocks, int position) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = blocks[g][static_cast<std::size_t>(position / block_size)];
      const BlockPool& pool = scheduler_.blocks().pool(g);
      ASSERT_EQ(pool.references(block), 0) << "given to another before the queued step";
      ASSERT_FALSE(pool.is_cached(block)) << "written while cached";
      at(g, block, position % block_size) = 0;
    }
  }

  // What the queued step reads is still the sequence's.
  void check_table(const std::vector<std::vector<BlockId>>& queued, const Sequence& sequence) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t i = static_cast<std::size_t>(sequence.first_block[g]); i < queued[g].size(); ++i) {
        ASSERT_EQ(queued[g][i], sequence.blocks[g][i]);
      }
    }
  }

  std::uint64_t& at(std::size_t group, BlockId block, int row) {
    return rows_[group][static_cast<std::size_t>(block * block_size + row)];
  }

  // Writes the slice's rows, then reads every row that its first token sees.
  void compute(const Slice& slice) {
    const Sequence& sequence = *slice.sequence;
    const std::vector<std::uint64_t> expected = history(sequence);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<BlockId>& blocks = sequence.blocks[g];
      const BlockPool& pool = scheduler_.blocks().pool(g);
      for (int p = sequence.computed; p < sequence.computed + slice.tokens; ++p) {
        const BlockId block = blocks[static_cast<std::size_t>(p / block_size)];
        ASSERT_EQ(pool.references(block), 1) << "written while shared";
        ASSERT_FALSE(pool.is_cached(block)) << "written while cached";
        at(g, block, p % block_size) = expected[static_cast<std::size_t>(p)];
      }
      const int window = groups_[g].window;
      for (int p = window == 0 ? 0 : std::max(0, sequence.computed - window + 1); p <= sequence.computed;
           ++p) {
        const BlockId block = blocks[static_cast<std::size_t>(p / block_size)];
        ASSERT_NE(block, no_block) << "slid out too early";
        ASSERT_EQ(at(g, block, p % block_size), expected[static_cast<std::size_t>(p)])
            << "position " << p << " of " << sequence.computed << " in group " << g << " is not its own";
      }
    }
  }

  // free + used = total, and every reference has an owner.
  void check_owners() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<int> owners(static_cast<std::size_t>(groups_[g].blocks));
      for (const Sequence* sequence : scheduler_.running_sequences()) {
        for (const BlockId block : sequence->blocks[g]) {
          if (block != no_block) ++owners[static_cast<std::size_t>(block)];
        }
      }
      const BlockPool& pool = scheduler_.blocks().pool(g);
      int unowned = 0;
      for (BlockId block = 0; block < pool.blocks(); ++block) {
        ASSERT_EQ(pool.references(block), owners[static_cast<std::size_t>(block)]);
        unowned += owners[static_cast<std::size_t>(block)] == 0 ? 1 : 0;
      }
      ASSERT_EQ(pool.free_blocks(), unowned);
    }
  }

  Random random_;
  SchedulerLimits limits_;
  std::vector<CacheGroup> groups_;
  Scheduler scheduler_;
  std::vector<std::vector<std::uint64_t>> rows_;  // for each group
  std::map<SequenceId, Alive> alive_;
  int longest_ = 0;
  SequenceId next_id_ = 1;
  std::uint64_t steps_ = 0, copies_ = 0, found_ = 0, ahead_ = 0, prompts_ahead_ = 0;
};

TEST(SchedulerModel, HoldsOverAMillionRandomOperations) {
  constexpr int seeds = 20, operations = 50'000;
  std::uint64_t preemptions = 0, copies = 0, found = 0, ahead = 0, prompts_ahead = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SchedulerLimits limits = {.max_sequences = 1 + static_cast<int>(seed % 7),
                                    .max_step_tokens = 7 + 9 * static_cast<int>(seed % 3),
                                    .max_prompt_tokens = 5};
    std::vector<CacheGroup> groups = {{0, 16 + static_cast<int>(seed)}};
    if (seed % 2 == 1) groups.push_back({10, 6 + static_cast<int>(seed % 9)});
    if (seed % 5 == 4) groups.push_back({3, 4});
    ModelTest test(seed, limits, groups, seed % 3 != 0);
    for (int i = 0; i < operations && !HasFailure(); ++i) test.operate();
    test.drain();
    if (HasFailure()) return;
    preemptions += test.preemptions();
    copies += test.copies();
    found += test.found();
    ahead += test.ahead();
    prompts_ahead += test.prompts_ahead();
  }
  EXPECT_GT(preemptions, 1000u);
  EXPECT_GT(copies, 1000u);
  EXPECT_GT(found, 1000u);
  EXPECT_GT(ahead, 10000u);
  EXPECT_GT(prompts_ahead, 10000u);
}

}  // namespace
}  // namespace inferno::testing
