#include "engine/engine_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

StepLimits step_limits(const EngineOptions& options, const CachePlan& plan) {
  return {.tokens = options.max_step_tokens,
          .sequences = options.max_sequences,
          .logit_rows = options.max_sequences,
          .blocks_per_sequence = blocks_for(plan.context, options.block_size)};
}

// An upper bound for the list entries that all sequences of a step have together.
int list_entries(const EngineOptions& options, const CachePlan& plan, int vocab) {
  const int listed = std::min(RequestLimits{}.max_listed, vocab);
  const std::int64_t one = std::min(plan.context, vocab) + 3 * std::int64_t{listed};
  return static_cast<int>(std::min<std::int64_t>(one * options.max_sequences, 1 << 30));
}

std::string failure_of(SampleOutcome outcome) {
  return outcome == SampleOutcome::not_finite
             ? "the model computed a logit that is not a finite number: its "
               "weights are damaged or the device is faulty"
             : "no token left to sample: the banned and allowed tokens exclude all";
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

EngineLoop::EngineLoop(Backend& backend, Decoder& decoder, const EngineOptions& options,
                       const CachePlan& plan, std::atomic<int>& pending)
    : backend_(backend),
      decoder_(decoder),
      pending_(pending),
      plans_ahead_(options.plans_ahead.value_or(backend.queues())),
      plan_(plan),
      group_of_layer_(group_of_layer(decoder.spec())),
      cache_(decoder.spec(), backend, plan.groups, options.block_size),
      buffers_(backend, step_limits(options, plan), static_cast<int>(plan.groups.size()), options.block_size),
      sampler_(backend, options.max_sequences, list_entries(options, plan, decoder.spec().vocab),
               options.max_logprobs),
      copy_memory_(backend.allocate(static_cast<std::size_t>(options.block_size) * 4, "copies of blocks")),
      copy_rows_{copy_memory_.data(), DType::i32, options.block_size, 1},
      scheduler_({.max_sequences = options.max_sequences,
                  .max_step_tokens = options.max_step_tokens,
                  .max_prompt_tokens = options.max_prompt_tokens},
                 KvBlocks(plan.groups, options.block_size, options.prefix_cache)) {}

void EngineLoop::accept(Submission submission) {
  GenerationRequest& request = submission.request;
  auto job = std::make_unique<Job>();
  job->stream = std::move(submission.stream);
  job->submitted = submission.submitted;
  job->prompt_tokens = static_cast<int>(request.prompt.size());
  const int room = plan_.context - job->prompt_tokens;
  const int answer = request.max_tokens == 0 ? room : std::min(request.max_tokens, room);
  std::vector<std::unique_ptr<Sequence>> sequences;
  job->choices.reserve(static_cast<std::size_t>(request.choices));  // choices_ points to them
  for (int i = 0; i < request.choices; ++i) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = next_id_++;
    sequence->tokens.reserve(static_cast<std::size_t>(job->prompt_tokens + answer));
    sequence->tokens = request.prompt;
    sequence->prompt_tokens = job->prompt_tokens;
    sequence->max_tokens = job->prompt_tokens + answer;
    sequence->stop_tokens = request.stop_tokens;
    sequence->client = request.client;
    sequence->scope = request.cache_scope;
    Choice& choice = job->choices.emplace_back(
        Choice{.job = job.get(),
               .id = sequence->id,
               .index = i,
               .sampling = SamplingState(request.sampling, submission.seed + static_cast<std::uint64_t>(i),
                                         request.prompt)});
    choices_[choice.id] = &choice;
    sequences.push_back(std::move(sequence));
  }
  scheduler_.add(std::move(sequences));
  jobs_.push_back(std::move(job));
  ++totals_.requests;
}

bool EngineLoop::step() {
  sweep_cancelled();
  if (!queued_) {
    StepPlan plan = scheduler_.next();
    if (plan.slices.empty()) return false;
    queued_ = queue_step(std::move(plan), StepTokens::given);
  }
  std::optional<QueuedStep> following = queue_ahead();
  finish_step(*queued_);
  queued_ = std::move(following);
  if (queued_) discard_removed(*queued_);
  ++totals_.steps;
  return true;
}

EngineLoop::QueuedStep EngineLoop::queue_step(StepPlan plan, StepTokens tokens) {
  mark_begun(plan);
  copy_blocks(plan.copies);
  const Matrix logits = forward(plan, tokens);
  QueuedStep step = {.plan = std::move(plan)};
  if (logits.rows > 0) step.draws = draw(step.plan, tokens, logits);
  return step;
}

// Queues the step after the queued one, if it depends on the tokens being sampled only as inputs: the sampler
// writes them to where that step reads them.
std::optional<EngineLoop::QueuedStep> EngineLoop::queue_ahead() {
  if (!plans_ahead_ || !queued_->is_complete) return std::nullopt;
  const auto looks_back = [this](const Slice& slice) { return choices_.at(slice.id)->sampling.looks_back(); };
  if (std::ranges::any_of(queued_->plan.slices, looks_back)) return std::nullopt;
  std::optional<StepPlan> plan = scheduler_.plan_ahead(queued_->plan);
  if (!plan) return std::nullopt;
  return queue_step(std::move(*plan), StepTokens::drawn);
}

void EngineLoop::finish_step(QueuedStep& step) {
  std::vector<Drawn> drawn = sampler_.read(step.draws);
  keep_slices(step.plan, drawn, [](const Slice& slice) { return slice.sequence != nullptr; });
  drop_failed(step.plan, drawn);
  std::vector<TokenId> tokens;
  for (const Drawn& one : drawn) tokens.push_back(one.head.token);
  publish(scheduler_.commit(step.plan, tokens), drawn);
}

// A queued step cannot be undone, so the results of sequences removed since are ignored.
void EngineLoop::discard_removed(QueuedStep& step) {
  for (Slice& slice : step.plan.slices) {
    if (slice.sequence == nullptr || scheduler_.find(slice.id) != nullptr) continue;
    slice.sequence = nullptr;
    step.is_complete = false;
  }
}

void EngineLoop::sweep_cancelled() {
  for (std::size_t i = 0; i < jobs_.size();) {
    Job& job = *jobs_[i];
    if (!job.stream->cancelled()) {
      ++i;
      continue;
    }
    for (Choice& choice : job.choices) {
      if (!choice.finished) finish(choice, FinishReason::cancelled);
    }
    drop(job);
  }
  if (queued_) discard_removed(*queued_);
}

void EngineLoop::mark_begun(const StepPlan& plan) {
  for (const Slice& slice : plan.slices) {
    Choice& choice = *choices_.at(slice.id);
    choice.cached = slice.sequence->cached;
    Job& job = *choice.job;
    if (job.begun) continue;
    no_longer_pending(job);
    job.started = Clock::now();
    totals_.prompt_tokens += static_cast<std::uint64_t>(job.prompt_tokens);
    totals_.cached_tokens += static_cast<std::uint64_t>(choice.cached);
  }
}

void EngineLoop::copy_blocks(const std::vector<BlockCopy>& copies) {
  for (const BlockCopy& copy : copies) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(copy.rows));
    std::iota(rows.begin(), rows.end(), copy.from * copy_rows_.rows);
    const Matrix from = copy_rows_.top(copy.rows);
    backend_.upload(from, std::as_bytes(std::span(rows)));
    for (std::size_t layer = 0; layer < group_of_layer_.size(); ++layer) {
      if (group_of_layer_[layer] != copy.group) continue;
      for (const Matrix& matrix : {cache_.layers()[layer].keys, cache_.layers()[layer].values}) {
        Matrix to = matrix.top(copy.rows);
        to.data += matrix.top(copy.to * copy_rows_.rows).bytes();
        backend_.take_rows(to, matrix, from);
      }
    }
  }
}

Matrix EngineLoop::forward(const StepPlan& plan, StepTokens tokens) {
  static constexpr TokenId unknown = 0;
  const bool drawn = tokens == StepTokens::drawn;
  std::vector<StepSlice> slices;
  for (const Slice& slice : plan.slices) {
    const Sequence& sequence = *slice.sequence;
    StepSlice& out = slices.emplace_back();
    out.start = sequence.computed + (drawn ? 1 : 0);
    out.tokens =
        drawn ? std::span(&unknown, 1)
              : std::span(sequence.tokens)
                    .subspan(static_cast<std::size_t>(out.start), static_cast<std::size_t>(slice.tokens));
    out.logits = slice.wants_logits ? 1 : 0;
    for (const std::vector<BlockId>& blocks : sequence.blocks) out.blocks.emplace_back(blocks);
  }
  return decoder_.forward(buffers_.fill(slices, tokens), cache_.layers());
}

Draws EngineLoop::draw(const StepPlan& plan, StepTokens tokens, Matrix logits) {
  sampler_.clear();
  for (const Slice& slice : plan.slices) {
    if (!slice.wants_logits) continue;
    const int known = static_cast<int>(slice.sequence->tokens.size());
    sampler_.add(choices_.at(slice.id)->sampling, known + (tokens == StepTokens::drawn ? 1 : 0));
  }
  return sampler_.draw(logits, buffers_.drawn_tokens(logits.rows));
}

// Removes all other slices, and the tokens sampled for them, from the plan.
template <class Keep>
void EngineLoop::keep_slices(StepPlan& plan, std::vector<Drawn>& drawn, const Keep& keeps) {
  std::vector<Slice> kept_slices;
  std::vector<Drawn> kept;
  std::size_t row = 0;
  for (const Slice& slice : plan.slices) {
    const bool keep = keeps(slice);
    if (keep) kept_slices.push_back(slice);
    if (slice.wants_logits && keep) kept.push_back(drawn[row]);
    row += slice.wants_logits ? 1 : 0;
  }
  plan.slices = std::move(kept_slices);
  drawn = std::move(kept);
}

// Ends requests for which no token could be sampled, and removes them from the plan, so that their step is
// not committed.
void EngineLoop::drop_failed(StepPlan& plan, std::vector<Drawn>& drawn) {
  std::vector<std::pair<Job*, SampleOutcome>> failed;
  std::size_t row = 0;
  for (const Slice& slice : plan.slices) {
    if (!slice.wants_logits) continue;
    const SampleOutcome outcome = drawn[row++].head.outcome;
    Job* job = choices_.at(slice.id)->job;
    const bool known = std::ranges::any_of(failed, [job](const auto& one) { return one.first == job; });
    if (outcome != SampleOutcome::token && !known) failed.emplace_back(job, outcome);
  }
  for (const auto& [job, outcome] : failed) {
    keep_slices(plan, drawn, [&](const Slice& slice) { return choices_.at(slice.id)->job != job; });
    end(*job, failure_of(outcome));
  }
}

void EngineLoop::publish(const std::vector<Progress>& progress, const std::vector<Drawn>& drawn) {
  for (std::size_t i = 0; i < progress.size(); ++i) {
    Choice& choice = *choices_.at(progress[i].id);
    const Drawn& from = drawn[i];
    if (choice.generated++ == 0) choice.first_token = Clock::now();
    choice.sampling.add(progress[i].token);
    Sampled event = {
        .token = progress[i].token, .logprob = from.head.logprob, .alternatives = {}, .choice = choice.index};
    for (const ListEntry& entry : from.alternatives)
      event.alternatives.emplace_back(entry.token, entry.value);
    choice.job->stream->publish(std::move(event));
    ++totals_.generated_tokens;
    if (!progress[i].finished) continue;
    Job& job = *choice.job;
    finish(choice, *progress[i].finished);
    if (std::ranges::all_of(job.choices, &Choice::finished)) drop(job);
  }
}

void EngineLoop::finish(Choice& choice, FinishReason reason) {
  const Job& job = *choice.job;
  const Clock::time_point now = Clock::now();
  Finished event = {.reason = reason,
                    .prompt_tokens = job.prompt_tokens,
                    .cached_tokens = choice.cached,
                    .generated_tokens = choice.generated,
                    .seed = choice.sampling.seed(),
                    .choice = choice.index};
  event.queue_seconds = seconds((job.begun ? job.started : now) - job.submitted);
  if (choice.generated > 0) {
    event.prompt_seconds = seconds(choice.first_token - job.started);
    event.decode_seconds = seconds(now - choice.first_token);
  } else if (job.begun) {
    event.prompt_seconds = seconds(now - job.started);
  }
  scheduler_.remove(choice.id);
  choices_.erase(choice.id);
  choice.finished = true;
  choice.job->stream->publish(event);
}

void EngineLoop::end(Job& job, const std::string& failure) {
  for (Choice& choice : job.choices) {
    scheduler_.remove(choice.id);
    choices_.erase(choice.id);
  }
  job.stream->publish(Failed{failure});
  drop(job);
}

void EngineLoop::drop(Job& job) {
  if (!job.begun) no_longer_pending(job);
  const auto at = std::ranges::find(jobs_, &job, &std::unique_ptr<Job>::get);
  std::swap(*at, jobs_.back());
  jobs_.pop_back();
}

void EngineLoop::no_longer_pending(Job& job) {
  job.begun = true;
  pending_.fetch_sub(1, std::memory_order_relaxed);
}

void EngineLoop::fail_all(const std::string& message) {
  queued_.reset();
  while (!jobs_.empty()) end(*jobs_.back(), message);
}

EngineStats EngineLoop::stats() const {
  EngineStats out = totals_;
  out.running = scheduler_.running();
  out.waiting = pending_.load(std::memory_order_relaxed);
  out.blocks = scheduler_.blocks().blocks();
  out.free_blocks = scheduler_.blocks().free_blocks();
  out.cache_bytes = plan_.bytes;
  out.preemptions = scheduler_.preemptions();
  return out;
}

}  // namespace inferno
