// Decides which sequences run in the next step. Pure bookkeeping: no device, no thread, no clock.
//
// Between two steps every sequence is waiting (it holds no block), running, or a fork that waits until its
// first sibling has computed the prompt. docs/scheduling.md has the picture and the invariants.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/kv_blocks.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/waiting_line.h"

namespace inferno {

struct SchedulerLimits {
  int max_sequences = 64;
  int max_step_tokens = 512;
  int max_prompt_tokens = 256;  // per step, while answers are decoded
};

// Tokens [start, start + tokens) of a sequence.
struct Slice {
  Sequence* sequence = nullptr;
  int tokens = 0;
  bool wants_logits = false;  // of the last token, to sample the next one
  int scored = 0;             // tokens before that one whose logits are wanted, too
  SequenceId id = sequence == nullptr ? 0 : sequence->id;  // valid even after the sequence is removed
  int start = sequence == nullptr ? 0 : sequence->start();
  // In a plan ahead: the row of logits of the step before that gives the token; no_row: the token is known.
  int source = sequence == nullptr ? Sequence::no_row : sequence->queued_token;

  int logit_rows() const { return scored + (wants_logits ? 1 : 0); }
};

// One step: single-token decodes and chunks of prompts.
struct StepPlan {
  std::vector<BlockCopy> copies;  // to be done before the step
  std::vector<Slice> slices;
};

// The token that a step gave a sequence.
struct Progress {
  SequenceId id = 0;
  TokenId token = 0;
  std::optional<FinishReason> finished;  // set: the scheduler has removed the sequence
};

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, KvBlocks blocks);

  // The first of `choices` computes the prompt; the others are forks of it. All have the same prompt.
  void add(std::vector<std::unique_ptr<Sequence>> choices);
  // Frees everything the sequence holds. Must not be called between next() and commit(), unless the caller
  // takes the slice out of the plan.
  void remove(SequenceId id);

  // Schedules decodes first, then prompts into the rest of the token budget, which clients share. Preempts
  // the youngest sequence if blocks run out. An empty plan means there is nothing to do.
  StepPlan next();
  // The step after `plan`, before `plan` is committed, as next() would schedule it if no answer ended with
  // `plan` except by its length. Sequences of `plan` that were removed since are null in it. nullopt if there
  // is nothing to do, if a sequence would have to be preempted or a prompt to be cut short for lack of
  // blocks, or if `plan` starts forks or scores a prompt. The caller commits it after `plan`, without the
  // sequences that `plan` finished.
  std::optional<StepPlan> plan_ahead(const StepPlan& plan);
  // One token for each slice that wanted logits, in plan order. Every plan is committed before next().
  std::vector<Progress> commit(const StepPlan& plan, std::span<const TokenId> tokens);

  // Prompt rows of a step while answers are decoded, up to SchedulerLimits::max_prompt_tokens.
  void set_prompt_rows(int rows) { prompt_rows_ = rows; }

  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return waiting_.size(); }
  std::uint64_t preemptions() const { return preemptions_; }
  const KvBlocks& blocks() const { return blocks_; }
  void drop_idle_prefixes() { blocks_.drop_idle_prefixes(); }
  const Sequence* find(SequenceId id) const;
  // Oldest first.
  std::span<Sequence* const> running_sequences() const { return running_; }

 private:
  struct Budget {
    int rows = 0;
    int prompt_rows = 0;
    int score_rows = 0;     // rows of logits beyond one for each running sequence
    bool is_ahead = false;  // nothing may be preempted
    bool is_short = false;  // of blocks
    // Sequences that the plan schedules first since they were admitted, and their was_scheduled before that.
    std::vector<std::pair<Sequence*, bool>> begun = {};
  };

  void schedule(StepPlan& plan, Budget& budget);
  void schedule_decodes(StepPlan& plan, Budget& budget);
  void schedule_prompts(StepPlan& plan, Budget& budget);
  void admit();
  void preempt_for_oldest(StepPlan& plan, Budget& budget);
  int schedule_chunk(StepPlan& plan, Budget& budget, Sequence& sequence, int max_rows);
  bool fits(const Sequence& sequence) const;
  void start(Sequence& sequence);
  static void mark_scheduled(Budget& budget, Sequence& sequence);
  static void forget_plan(const Budget& budget);
  void preempt(Sequence& sequence);
  void release_forks(Sequence& sequence);
  std::optional<FinishReason> why_finished(const Sequence& sequence) const;

  SchedulerLimits limits_;
  KvBlocks blocks_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  WaitingLine waiting_;
  std::vector<Sequence*> running_;  // oldest first
  std::uint64_t preemptions_ = 0;
  int prompt_rows_;
};

}  // namespace inferno
