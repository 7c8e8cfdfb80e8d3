#include "engine/scheduler.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace inferno {
namespace {

bool is_decode(const Sequence& sequence) {
  return sequence.remaining() == 1;
}

// A sequence that was just admitted gets its first rows from the prompt budget, even if only one is missing.
bool is_prompt(const Sequence& sequence) {
  return sequence.is_new || !is_decode(sequence);
}

// The second round of schedule_prompts() extends chunks that are already in the plan.
Slice* slice_of(StepPlan& plan, const Sequence& sequence) {
  const auto at = std::ranges::find(plan.slices, &sequence, &Slice::sequence);
  return at == plan.slices.end() ? nullptr : &*at;
}

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, KvBlocks blocks)
    : limits_(limits), blocks_(std::move(blocks)), prompt_rows_(limits.max_prompt_tokens) {}

void Scheduler::add(std::vector<std::unique_ptr<Sequence>> choices) {
  Sequence& first = *choices.front();
  for (std::size_t i = 1; i < choices.size(); ++i) first.forks.push_back(choices[i]->id);
  waiting_.add(&first);
  for (auto& sequence : choices) {
    const SequenceId id = sequence->id;
    sequences_[id] = std::move(sequence);
  }
}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto at = sequences_.find(id);
  return at == sequences_.end() ? nullptr : at->second.get();
}

void Scheduler::remove(SequenceId id) {
  const auto at = sequences_.find(id);
  if (at == sequences_.end()) return;
  Sequence& sequence = *at->second;
  if (sequence.is_running) {
    std::erase(running_, &sequence);
  } else {
    waiting_.remove(&sequence);
  }
  blocks_.release(sequence);
  sequences_.erase(at);
}

StepPlan Scheduler::next() {
  StepPlan plan;
  Budget budget = {.rows = limits_.max_step_tokens, .prompt_rows = limits_.max_step_tokens};
  schedule(plan, budget);
  if (plan.slices.empty() && !running_.empty()) preempt_for_oldest(plan, budget);
  return plan;
}

std::optional<StepPlan> Scheduler::plan_ahead(const StepPlan& plan) {
  const auto decides_more = [](const Slice& slice) {
    return slice.scored > 0 ||
           (slice.sequence != nullptr && slice.wants_logits && !slice.sequence->forks.empty());
  };
  if (std::ranges::any_of(plan.slices, decides_more)) return std::nullopt;
  int row = 0;
  for (const Slice& slice : plan.slices) {
    if (slice.sequence != nullptr) {
      slice.sequence->queued_rows = slice.tokens;
      slice.sequence->queued_token = slice.wants_logits ? row : Sequence::no_row;
    }
    row += slice.logit_rows();
  }
  StepPlan next;
  Budget budget = {.rows = limits_.max_step_tokens, .prompt_rows = limits_.max_step_tokens, .is_ahead = true};
  schedule(next, budget);
  for (const Slice& slice : plan.slices) {
    if (slice.sequence == nullptr) continue;
    slice.sequence->queued_rows = 0;
    slice.sequence->queued_token = Sequence::no_row;
  }
  // Blocks that were taken stay with their sequences, which need them in their next step anyway.
  if (budget.is_short || next.slices.empty()) {
    forget_plan(budget);
    return std::nullopt;
  }
  return next;
}

void Scheduler::schedule(StepPlan& plan, Budget& budget) {
  schedule_decodes(plan, budget);
  if (budget.is_short) return;
  budget.prompt_rows = plan.slices.empty() ? budget.rows : std::min(budget.rows, prompt_rows_);
  admit();
  budget.score_rows = limits_.max_sequences - static_cast<int>(running_.size());
  schedule_prompts(plan, budget);
}

void Scheduler::schedule_decodes(StepPlan& plan, Budget& budget) {
  for (std::size_t i = 0; i < running_.size() && budget.rows > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (!is_decode(sequence) || sequence.will_end()) continue;
    const int end = sequence.start() + 1;
    // The youngest sequence is this one or a later one, so it has no slice yet.
    while (sequence.is_running && !blocks_.grow(sequence, end, plan.copies)) {
      budget.is_short = budget.is_ahead;
      if (budget.is_short) return;
      preempt(*running_.back());
    }
    if (!sequence.is_running) continue;  // it preempted itself
    mark_scheduled(budget, sequence);
    plan.slices.push_back({&sequence, 1, true});
    --budget.rows;
  }
}

// Clients with prompts get equal shares of the budget, spent on their oldest sequences first. The remainder
// goes to the oldest sequences of all.
void Scheduler::schedule_prompts(StepPlan& plan, Budget& budget) {
  std::map<std::string_view, int> shares;
  for (const Sequence* sequence : running_) {
    if (is_prompt(*sequence)) shares[sequence->client] = 0;
  }
  if (shares.empty()) return;
  const int share = std::max(1, budget.prompt_rows / static_cast<int>(shares.size()));
  for (auto& [client, left] : shares) left = share;
  for (Sequence* sequence : running_) {
    if (!is_prompt(*sequence)) continue;
    int& left = shares[sequence->client];
    left -= schedule_chunk(plan, budget, *sequence, left);
  }
  for (Sequence* sequence : running_) {
    if (is_prompt(*sequence)) schedule_chunk(plan, budget, *sequence, budget.prompt_rows);
  }
}

// Schedules as many tokens as `max_rows`, the budget and the free blocks allow. Returns their number.
int Scheduler::schedule_chunk(StepPlan& plan, Budget& budget, Sequence& sequence, int max_rows) {
  if (std::min(max_rows, budget.prompt_rows) <= 0) return 0;
  if (sequence.is_new) {  // another sequence may have computed more of its prefix since it was admitted
    blocks_.release(sequence);
    blocks_.claim_prefix(sequence);
  }
  Slice* slice = slice_of(plan, sequence);
  const int placed = slice == nullptr ? 0 : slice->tokens;
  int room = std::min({max_rows, budget.prompt_rows, sequence.remaining() - placed});
  const int own_row = placed == 0 ? 1 : 0;
  if (sequence.is_prompt_scored()) room = std::min(room, budget.score_rows + own_row);
  if (room <= 0) return 0;
  const int from = sequence.start() + placed;
  const int end = blocks_.reachable_end(sequence, from + room);
  // Blocks of a window become free when the queued step is committed.
  budget.is_short = budget.is_short || (budget.is_ahead && end < from + room);
  if (end <= from || budget.is_short) return 0;
  expects(blocks_.grow(sequence, end, plan.copies), "grow() manages what reachable_end() promised");
  mark_scheduled(budget, sequence);
  if (slice == nullptr) slice = &plan.slices.emplace_back(Slice{&sequence, 0, false});
  slice->tokens = end - slice->start;
  slice->wants_logits = slice->tokens == sequence.remaining();
  if (sequence.is_prompt_scored()) {
    slice->scored = slice->tokens - (slice->wants_logits ? 1 : 0);
    budget.score_rows -= end - from - own_row;
  }
  budget.rows -= end - from;
  budget.prompt_rows -= end - from;
  return end - from;
}

// Admits as many sequences as there are places and blocks for.
void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < limits_.max_sequences) {
    Sequence& sequence = *waiting_.front();
    blocks_.claim_prefix(sequence);
    if (!running_.empty() && !fits(sequence)) {
      blocks_.release(sequence);
      return;  // no overtaking: otherwise a large request might wait forever
    }
    waiting_.pop();
    start(sequence);
    sequence.is_new = true;
  }
}

// Whether the whole prompt and a first token fit beside what running sequences still need.
bool Scheduler::fits(const Sequence& sequence) const {
  std::vector<int> promised(blocks_.groups());
  for (const Sequence* other : running_) {
    blocks_.add_missing(*other, other->length(), promised);
  }
  const int end = std::min(static_cast<int>(sequence.tokens.size()) + 1, sequence.max_tokens);
  return blocks_.has_room(sequence, end, promised);
}

void Scheduler::start(Sequence& sequence) {
  sequence.is_running = true;
  const auto at = std::ranges::upper_bound(running_, sequence.id, {}, &Sequence::id);
  running_.insert(at, &sequence);
}

void Scheduler::mark_scheduled(Budget& budget, Sequence& sequence) {
  if (sequence.is_new) budget.begun.emplace_back(&sequence, sequence.was_scheduled);
  if (!sequence.was_scheduled) sequence.cached = sequence.computed;
  sequence.was_scheduled = true;
  sequence.is_new = false;
}

// Sequences of a plan that is dropped look for a prefix again when they are scheduled.
void Scheduler::forget_plan(const Budget& budget) {
  for (const auto& [sequence, was_scheduled] : budget.begun) {
    sequence->is_new = true;
    sequence->was_scheduled = was_scheduled;
  }
}

void Scheduler::preempt(Sequence& sequence) {
  std::erase(running_, &sequence);
  sequence.is_running = sequence.is_new = false;
  blocks_.release(sequence);
  waiting_.add_preempted(&sequence);
  ++preemptions_;
}

// If several prompts have begun and none can continue, the oldest gets the blocks of the youngest. It fits
// alone, or it would not have been accepted.
void Scheduler::preempt_for_oldest(StepPlan& plan, Budget& budget) {
  while (plan.slices.empty() && running_.size() > 1) {
    preempt(*running_.back());
    schedule_chunk(plan, budget, *running_.front(), budget.prompt_rows);
  }
  expects(!plan.slices.empty(), "a sequence that was accepted fits alone");
}

std::vector<Progress> Scheduler::commit(const StepPlan& plan, std::span<const TokenId> tokens) {
  std::vector<Progress> progress;
  std::size_t row = 0;
  for (const Slice& slice : plan.slices) {
    Sequence& sequence = *slice.sequence;
    expects(sequence.computed == slice.start, "steps are committed in their order");
    sequence.computed += slice.tokens;
    blocks_.advance(sequence);
    if (!slice.wants_logits) continue;
    release_forks(sequence);
    sequence.tokens.push_back(tokens[row++]);
    const std::optional<FinishReason> reason = why_finished(sequence);
    progress.push_back({sequence.id, sequence.tokens.back(), reason});
  }
  expects(row == tokens.size(), "one token for each slice that wanted logits");
  for (const Progress& one : progress) {
    if (one.finished) remove(one.id);
  }
  return progress;
}

void Scheduler::release_forks(Sequence& sequence) {
  for (const SequenceId id : std::exchange(sequence.forks, {})) {
    const auto at = sequences_.find(id);
    if (at == sequences_.end()) continue;
    Sequence& fork = *at->second;
    fork.cached = sequence.cached;
    fork.was_scheduled = true;  // with its sibling
    if (static_cast<int>(running_.size()) < limits_.max_sequences) {
      blocks_.fork(sequence, fork);
      start(fork);
    } else {
      waiting_.add_preempted(&fork);
    }
  }
}

std::optional<FinishReason> Scheduler::why_finished(const Sequence& sequence) const {
  if (std::ranges::find(sequence.stop_tokens, sequence.tokens.back()) != sequence.stop_tokens.end()) {
    return FinishReason::stop;
  }
  if (static_cast<int>(sequence.tokens.size()) >= sequence.max_tokens) return FinishReason::length;
  return std::nullopt;
}

}  // namespace inferno
