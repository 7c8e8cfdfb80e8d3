// Decides who runs in the next step. Pure bookkeeping: no device, no thread, no clock.
//
// Between two steps every sequence is waiting (it holds no block), running, or a fork that waits for its
// first sibling's prompt. docs/scheduling.md has the picture and the invariants.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv_blocks.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/waiting_line.h"

namespace inferno {

struct SchedulerLimits {
  int max_sequences = 64;
  int max_step_tokens = 512;
  int max_prompt_tokens = 256;  // of a step that also writes answers
};

// Tokens [computed, computed + tokens) of a sequence.
struct Slice {
  Sequence* sequence = nullptr;
  int tokens = 0;
  bool wants_logits = false;
  SequenceId id = sequence == nullptr ? 0 : sequence->id;  // which outlives the sequence
};

// A step mixes single-token decodes and chunks of prompts.
struct Plan {
  std::vector<BlockCopy> copies;  // to be made before the step
  std::vector<Slice> slices;
};

// What a step brought a sequence.
struct Progress {
  SequenceId id = 0;
  TokenId token = 0;
  std::optional<FinishReason> finished;  // it is gone from the scheduler then
};

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, KvBlocks blocks);

  // The first of `choices` computes the prompt; the others are forks of it. All have the same prompt.
  void add(std::vector<std::unique_ptr<Sequence>> choices);
  // Wherever it is, whatever it holds. Not between next() and commit(), unless the slice leaves the plan.
  void remove(SequenceId id);

  // Decodes first, then prompts into what is left of the token budget; clients share it. Preempts the
  // youngest sequence when blocks run out. An empty plan means there is nothing to do.
  Plan next();
  // The plan behind `plan`, which is not committed yet, where that does not depend on its tokens: the same
  // sequences write one more each. nullopt when anybody else could have a turn, somebody's answer will be
  // full, or blocks are short. It is committed behind `plan`, without those that `plan` finished.
  std::optional<Plan> ahead(const Plan& plan);
  // One token for each slice that wanted logits, in plan order. Every plan is committed before next().
  std::vector<Progress> commit(const Plan& plan, std::span<const TokenId> tokens);

  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return waiting_.size(); }
  std::uint64_t preemptions() const { return preemptions_; }
  const KvBlocks& blocks() const { return blocks_; }
  const Sequence* find(SequenceId id) const;
  // Oldest first.
  std::span<Sequence* const> running_sequences() const { return running_; }

 private:
  struct Budget {
    int rows = 0;
    int prompt_rows = 0;
  };

  void place_decodes(Plan& plan, Budget& budget);
  void place_prompts(Plan& plan, Budget& budget);
  void admit();
  void free_the_oldest(Plan& plan, Budget& budget);
  int place_chunk(Plan& plan, Budget& budget, Sequence& sequence, int most);
  bool fits(const Sequence& sequence) const;
  void start(Sequence& sequence);
  void serve(Sequence& sequence);
  void preempt(Sequence& sequence);
  void release_forks(Sequence& sequence);
  std::optional<FinishReason> why_finished(const Sequence& sequence) const;

  SchedulerLimits limits_;
  KvBlocks blocks_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  WaitingLine waiting_;
  std::vector<Sequence*> running_;  // oldest first
  std::uint64_t preemptions_ = 0;
};

}  // namespace inferno
