#include "engine/engine_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

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
  const std::int64_t one = std::min(plan.context, vocab) + 4 * std::int64_t{listed};
  return static_cast<int>(std::min<std::int64_t>(one * options.max_sequences, 1 << 30));
}

Failed failure_of(SampleOutcome outcome, const ConstrainedAnswer* constraint) {
  if (outcome == SampleOutcome::not_finite) {
    return {
        "the model computed a logit that is not a finite number: its "
        "weights are damaged or the device is faulty"};
  }
  if (constraint == nullptr) return {"no token left to sample: the banned and allowed tokens exclude all"};
  if (constraint->failure()) return *constraint->failure();
  return {"no token left to sample: the constraint and the banned and allowed tokens exclude all"};
}

bool is_decode(const Slice& slice) {
  return slice.tokens == 1 && slice.wants_logits;
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

EngineLoop::EngineLoop(Backend& backend, Decoder& decoder, const EngineOptions& options,
                       const CachePlan& plan, WaitingCount& waiting)
    : backend_(backend),
      decoder_(decoder),
      waiting_(waiting),
      plans_ahead_(options.plans_ahead.value_or(backend.queues())),
      plan_(plan),
      max_sequences_(options.max_sequences),
      group_of_layer_(group_of_layer(decoder.spec())),
      cache_(decoder.spec(), backend, decoder.cache_types(), plan.groups, options.block_size),
      buffers_(backend, step_limits(options, plan), static_cast<int>(plan.groups.size()), options.block_size),
      sampler_(backend, {.rows = options.max_sequences,
                         .list_entries = list_entries(options, plan, decoder.spec().vocab),
                         .max_alternatives = options.max_logprobs,
                         .vocab = decoder.spec().vocab}),
      copy_memory_(backend.allocate(static_cast<std::size_t>(options.block_size) * 4, "copies of blocks")),
      copy_rows_{copy_memory_.data(), DType::i32, options.block_size, 1},
      scheduler_({.max_sequences = options.max_sequences,
                  .max_step_tokens = options.max_step_tokens,
                  .max_prompt_tokens = options.max_prompt_tokens},
                 KvBlocks(plan.groups, options.block_size, options.prefix_cache)),
      prompt_budget_(options.max_prompt_tokens, options.max_step_seconds),
      timer_(options.times_steps ? backend.make_step_timer() : nullptr) {}

void EngineLoop::accept(Submission submission) {
  GenerationRequest& request = submission.request;
  auto job = std::make_unique<Job>();
  job->stream = std::move(submission.stream);
  job->client = request.client;
  job->submitted = submission.submitted;
  job->prompt_tokens = static_cast<int>(request.prompt.size());
  if (request.prompt_logprobs) {
    job->prompt_alternatives = *request.prompt_logprobs;
    job->prompt_scores = std::make_shared<std::vector<Sampled>>(request.prompt.size());
    for (std::size_t i = 0; i < request.prompt.size(); ++i)
      (*job->prompt_scores)[i].token = request.prompt[i];
  }
  job->choices.reserve(static_cast<std::size_t>(request.choices));  // choices_ points to them
  for (int i = 0; i < request.choices; ++i) job->held.push_back(add_choice(*job, submission, i));
  job->pending = request.constraint;
  if (!job->pending) scheduler_.add(std::exchange(job->held, {}));
  jobs_.push_back(std::move(job));
  ++totals_.requests;
}

std::unique_ptr<Sequence> EngineLoop::add_choice(Job& job, const Submission& submission, int index) {
  const GenerationRequest& request = submission.request;
  const int room = plan_.context - job.prompt_tokens;
  const int answer = request.max_tokens == 0 ? room : std::min(request.max_tokens, room);
  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id_++;
  sequence->tokens.reserve(static_cast<std::size_t>(job.prompt_tokens + answer));
  sequence->tokens = request.prompt;
  sequence->prompt_tokens = job.prompt_tokens;
  sequence->max_tokens = job.prompt_tokens + answer;
  sequence->stop_tokens = request.stop_tokens;
  sequence->client = request.client;
  sequence->scope = request.cache_scope;
  sequence->reuse_prefix = request.reuse_prefix && !request.prompt_logprobs;
  sequence->wants_prompt_logits = index == 0 && request.prompt_logprobs.has_value();
  Choice& choice = job.choices.emplace_back(
      Choice{.job = &job,
             .id = sequence->id,
             .index = index,
             .sampling = SamplingState(request.sampling, submission.seed + static_cast<std::uint64_t>(index),
                                       request.prompt)});
  choice.min_end = job.prompt_tokens + std::min(request.min_tokens, answer);
  // With a constraint the mask does this.
  if (request.min_tokens > 0 && !request.constraint) {
    choice.sampling.ban_before(choice.min_end, request.stop_tokens, decoder_.spec().vocab);
  }
  choices_[choice.id] = &choice;
  return sequence;
}

bool EngineLoop::awaits_constraint() const {
  return std::ranges::any_of(jobs_, [](const auto& job) { return job->pending != nullptr; });
}

// Hands requests whose constraints were compiled since the last step to the scheduler, and ends those whose
// constraints are wrong.
void EngineLoop::start_compiled() {
  std::vector<Job*> ready;
  for (const auto& job : jobs_) {
    if (job->pending && job->pending->is_ready()) ready.push_back(job.get());
  }
  std::ranges::sort(ready, {}, [](const Job* job) { return job->choices.front().id; });  // first come first
  for (Job* job : ready) {
    try {
      start_compiled(*job);
    } catch (...) {
      end(*job, failure_of_constraint());
    }
  }
}

void EngineLoop::start_compiled(Job& job) {
  const Constraint& constraint = job.pending->get();
  for (std::size_t i = 0; i < job.choices.size(); ++i) {
    job.choices[i].constraint = std::make_unique<ConstrainedAnswer>(
        constraint.fork(), job.held[i]->stop_tokens, job.choices[i].min_end, decoder_.spec().vocab);
  }
  job.pending.reset();
  scheduler_.add(std::exchange(job.held, {}));
}

bool EngineLoop::step() {
  const Clock::time_point start = Clock::now();
  sweep_cancelled();
  start_compiled();
  if (!queued_) {
    StepPlan plan = scheduler_.next();
    if (plan.slices.empty()) {
      if (timer_) timer_->rest();
      tokens_read_.reset();
      return false;
    }
    queued_ = queue_step(std::move(plan), Ahead::no);
  }
  std::optional<QueuedStep> following = queue_ahead();
  finish_step(*queued_);
  queued_ = std::move(following);
  if (queued_) {
    discard_removed(*queued_);
    if (queued_->undrawn.rows > 0) draw_late(*queued_);
  }
  step_seconds_ += seconds(Clock::now() - start);
  return true;
}

EngineLoop::QueuedStep EngineLoop::queue_step(StepPlan plan, Ahead ahead) {
  if (timer_) timer_->begin();
  mark_begun(plan);
  copy_blocks(plan.copies);
  const Matrix logits = forward(plan);
  QueuedStep step = {.plan = std::move(plan)};
  if (ahead == Ahead::yes && logits.rows > 0 && has_constraint(step.plan)) {
    step.undrawn = logits;
    return step;
  }
  if (logits.rows > 0) step.draws = draw(step.plan, logits);
  if (timer_) timer_->end();
  return step;
}

// What the readers of answers wait for is the time between the tokens of two steps.
void EngineLoop::adapt_prompt_rows(const StepPlan& plan) {
  const auto tokens = std::ranges::count_if(plan.slices, &Slice::wants_logits);
  const std::optional<Clock::time_point> before = std::exchange(tokens_read_, std::nullopt);
  if (tokens == 0) return;  // nothing was waited for
  tokens_read_ = Clock::now();
  if (!before || !std::ranges::any_of(plan.slices, is_decode)) return;
  int prompt_rows = 0;
  for (const Slice& slice : plan.slices) prompt_rows += is_decode(slice) ? 0 : slice.tokens;
  prompt_budget_.note(prompt_rows, seconds(*tokens_read_ - *before));
  scheduler_.set_prompt_rows(prompt_budget_.rows());
}

void EngineLoop::count(const StepPlan& plan) {
  const auto decodes = static_cast<std::size_t>(std::ranges::count_if(plan.slices, is_decode));
  ++totals_.steps;
  if (decodes == plan.slices.size()) {
    ++totals_.decode_steps;
  } else if (decodes > 0) {
    ++totals_.mixed_steps;
  }
  for (const Slice& slice : plan.slices) totals_.step_rows += static_cast<std::uint64_t>(slice.tokens);
}

// Queues the step after the queued one, if it depends on the tokens being sampled only as inputs: the sampler
// writes them to where that step reads them.
std::optional<EngineLoop::QueuedStep> EngineLoop::queue_ahead() {
  if (!plans_ahead_) return std::nullopt;
  const auto looks_back = [this](const Slice& slice) {
    return slice.sequence != nullptr && slice.wants_logits && choices_.at(slice.id)->sampling.looks_back();
  };
  if (std::ranges::any_of(queued_->plan.slices, looks_back)) return std::nullopt;
  std::optional<StepPlan> plan = scheduler_.plan_ahead(queued_->plan);
  if (!plan) return std::nullopt;
  ++totals_.ahead_steps;
  return queue_step(std::move(*plan), Ahead::yes);
}

void EngineLoop::finish_step(QueuedStep& step) {
  const Clock::time_point start = Clock::now();
  std::vector<Drawn> drawn = sampler_.read(step.draws);
  waited_seconds_ += seconds(Clock::now() - start);
  count(step.plan);
  adapt_prompt_rows(step.plan);
  take_scores(step.plan, drawn);
  keep_slices(step.plan, drawn, [](const Slice& slice) { return slice.sequence != nullptr; });
  drop_failed(step.plan, drawn);
  std::vector<TokenId> tokens;
  for (const Drawn& one : drawn) tokens.push_back(one.head.token);
  std::vector<Progress> progress = scheduler_.commit(step.plan, tokens);
  take_tokens(progress);
  publish(progress, drawn);
}

// Queues the draw of a step whose forward pass was queued before the tokens of the step before it were read.
void EngineLoop::draw_late(QueuedStep& step) {
  step.draws = draw(step.plan, std::exchange(step.undrawn, {}));
  if (timer_) timer_->end();
}

// A queued step cannot be undone, so the results of sequences removed since are ignored.
void EngineLoop::discard_removed(QueuedStep& step) {
  for (Slice& slice : step.plan.slices) {
    if (scheduler_.find(slice.id) == nullptr) slice.sequence = nullptr;
  }
}

void EngineLoop::sweep_cancelled() {
  for (std::size_t i = 0; i < jobs_.size();) {
    Job& job = *jobs_[i];
    const bool whole = job.stream->cancelled();
    if (!whole && !job.stream->has_cancelled_choices()) {
      ++i;
      continue;
    }
    for (Choice& choice : job.choices) {
      // A choice without a token may be the one that computes the prompt for all.
      const bool ends = whole || (choice.generated > 0 && job.stream->cancelled(choice.index));
      if (!choice.finished && ends) finish(choice, FinishReason::cancelled);
    }
    if (std::ranges::all_of(job.choices, &Choice::finished)) {
      drop(job);
    } else {
      ++i;
    }
  }
  if (queued_) discard_removed(*queued_);
}

void EngineLoop::mark_begun(const StepPlan& plan) {
  for (const Slice& slice : plan.slices) {
    Choice& choice = *choices_.at(slice.id);
    choice.cached = slice.sequence->cached;
    Job& job = *choice.job;
    if (job.begun) continue;
    job.begun = true;
    waiting_.begin(job.client, static_cast<int>(job.choices.size()));
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

Matrix EngineLoop::forward(const StepPlan& plan) {
  static constexpr TokenId unknown = 0;
  std::vector<StepSlice> slices;
  for (const Slice& slice : plan.slices) {
    const Sequence& sequence = *slice.sequence;
    StepSlice& out = slices.emplace_back();
    out.start = slice.start;
    out.drawn = slice.source == Sequence::no_row ? StepSlice::given : slice.source;
    out.tokens = slice.source != Sequence::no_row ? std::span(&unknown, 1)
                                                  : std::span(sequence.tokens)
                                                        .subspan(static_cast<std::size_t>(out.start),
                                                                 static_cast<std::size_t>(slice.tokens));
    out.logits = slice.logit_rows();
    for (const std::vector<BlockId>& blocks : sequence.blocks) out.blocks.emplace_back(blocks);
  }
  return decoder_.forward(buffers_.fill(slices), cache_.layers());
}

bool EngineLoop::has_constraint(const StepPlan& plan) const {
  return std::ranges::any_of(
      plan.slices, [this](const Slice& slice) { return choices_.at(slice.id)->constraint != nullptr; });
}

Draws EngineLoop::draw(const StepPlan& plan, Matrix logits) {
  sampler_.clear();
  std::vector<MaskTask> masks;
  for (const Slice& slice : plan.slices) {
    if (slice.sequence == nullptr) {  // removed since its forward pass was queued
      for (int i = 0; i < slice.logit_rows(); ++i) sampler_.add_unread();
      continue;
    }
    const Sequence& sequence = *slice.sequence;
    for (int i = 1; i <= slice.scored; ++i) {
      sampler_.add_given(sequence.tokens[static_cast<std::size_t>(slice.start + i)],
                         choices_.at(slice.id)->job->prompt_alternatives);
    }
    if (!slice.wants_logits) continue;
    const Choice& choice = *choices_.at(slice.id);
    const int position = slice.start + slice.tokens;
    sampler_.add(choice.sampling, position);
    if (choice.constraint) masks.push_back({choice.constraint.get(), sampler_.add_mask(), position});
  }
  fill_masks(masks);
  return sampler_.draw(logits, buffers_.drawn_tokens(logits.rows));
}

// The forward pass is queued, so a backend that queues computes it meanwhile.
void EngineLoop::fill_masks(std::span<const MaskTask> tasks) {
  if (tasks.empty()) return;
  constexpr std::size_t worth_sharing = 4;
  constexpr int max_threads = 8;
  const auto fill = [&](const ThreadPool::Range& range) {
    for (auto i = range.begin; i < range.end; ++i) {
      const MaskTask& task = tasks[static_cast<std::size_t>(i)];
      task.constraint->fill(task.mask, task.position);
    }
  };
  const auto count = static_cast<std::int64_t>(tasks.size());
  const Clock::time_point start = Clock::now();
  if (tasks.size() < worth_sharing) {
    fill({0, count, 0});
  } else {
    if (!mask_threads_) mask_threads_ = std::make_unique<ThreadPool>(std::min(max_threads, usable_cores()));
    mask_threads_->parallel_for(count, 1, fill);
  }
  const double spent = seconds(Clock::now() - start);
  totals_.mask_seconds += spent;
  totals_.max_mask_seconds = std::max(totals_.max_mask_seconds, spent);
}

// Takes the results for tokens of prompts out of `drawn`, which then has one for each slice that wants
// logits.
void EngineLoop::take_scores(const StepPlan& plan, std::vector<Drawn>& drawn) {
  if (std::ranges::all_of(plan.slices, [](const Slice& slice) { return slice.scored == 0; })) return;
  std::vector<Drawn> kept;
  auto row = drawn.begin();
  for (const Slice& slice : plan.slices) {
    const auto choice = choices_.find(slice.id);
    for (int i = 1; i <= slice.scored; ++i, ++row) {
      if (slice.sequence == nullptr || choice == choices_.end()) continue;
      Job& job = *choice->second->job;
      if (row->head.outcome != SampleOutcome::token) job.prompt_outcome = row->head.outcome;
      Sampled& token = job.prompt_scores->at(static_cast<std::size_t>(slice.sequence->computed + i));
      token.logprob = row->head.logprob;
      token.alternatives.clear();
      for (const ListEntry& entry : row->alternatives) {
        token.alternatives.emplace_back(entry.token, entry.value);
      }
    }
    if (slice.wants_logits) kept.push_back(*row++);
  }
  drawn = std::move(kept);
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
  std::vector<std::pair<Job*, Failed>> failed;
  std::size_t row = 0;
  for (const Slice& slice : plan.slices) {
    const Choice& choice = *choices_.at(slice.id);
    Job* job = choice.job;
    SampleOutcome outcome = job->prompt_outcome;
    if (slice.wants_logits && drawn[row++].head.outcome != SampleOutcome::token) {
      outcome = drawn[row - 1].head.outcome;
    }
    const bool known = std::ranges::any_of(failed, [job](const auto& one) { return one.first == job; });
    if (outcome != SampleOutcome::token && !known) {
      failed.emplace_back(job, failure_of(outcome, choice.constraint.get()));
    }
  }
  for (const auto& [job, failure] : failed) {
    keep_slices(plan, drawn, [&](const Slice& slice) { return choices_.at(slice.id)->job != job; });
    end(*job, failure);
  }
}

// Tells constraints their tokens. An answer that nothing can follow ends, also where it reached its limit.
void EngineLoop::take_tokens(std::vector<Progress>& progress) {
  for (Progress& one : progress) {
    const Choice& choice = *choices_.at(one.id);
    if (!choice.constraint || one.finished == FinishReason::stop) continue;
    if (choice.constraint->take(one.token)) one.finished = FinishReason::stop;
  }
}

// Readers are woken when all tokens of the step are there, so that one that reads several answers wakes once.
void EngineLoop::publish(const std::vector<Progress>& progress, const std::vector<Drawn>& drawn) {
  published_.clear();
  for (std::size_t i = 0; i < progress.size(); ++i) {
    Choice& choice = *choices_.at(progress[i].id);
    const Drawn& from = drawn[i];
    const bool is_first = choice.generated++ == 0;
    if (is_first) choice.first_token = Clock::now();
    choice.sampling.add(progress[i].token);
    Sampled event = {
        .token = progress[i].token, .logprob = from.head.logprob, .alternatives = {}, .choice = choice.index};
    for (const ListEntry& entry : from.alternatives)
      event.alternatives.emplace_back(entry.token, entry.value);
    if (is_first) event.prompt = choice.job->prompt_scores;
    choice.job->stream->push(std::move(event));
    ++totals_.generated_tokens;
    published_.push_back(choice.job->stream);
    if (!progress[i].finished) continue;
    Job& job = *choice.job;
    finish(choice, *progress[i].finished);
    if (std::ranges::all_of(job.choices, &Choice::finished)) drop(job);
  }
  for (const auto& stream : published_) stream->wake();
  published_.clear();
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
  if (job.begun) waiting_.end(1);  // before the event, which may be answered by the next request
  job.stream->publish(event);
}

void EngineLoop::end(Job& job, Failed failure) {
  for (Choice& choice : job.choices) {
    scheduler_.remove(choice.id);
    choices_.erase(choice.id);
  }
  if (job.begun) waiting_.end(static_cast<int>(std::ranges::count(job.choices, false, &Choice::finished)));
  job.stream->publish(std::move(failure));
  drop(job);
}

void EngineLoop::drop(Job& job) {
  if (job.pending) job.pending->cancel();
  if (!job.begun) waiting_.remove(job.client, static_cast<int>(job.choices.size()));
  const auto at = std::ranges::find(jobs_, &job, &std::unique_ptr<Job>::get);
  std::swap(*at, jobs_.back());
  jobs_.pop_back();
}

void EngineLoop::fail_all(const std::string& message) {
  queued_.reset();
  while (!jobs_.empty()) end(*jobs_.back(), {message});
}

EngineStats EngineLoop::stats() const {
  EngineStats out = totals_;
  out.running = scheduler_.running();
  out.waiting = waiting_.total();
  out.blocks = scheduler_.blocks().blocks();
  out.free_blocks = scheduler_.blocks().free_blocks();
  out.cache_bytes = plan_.bytes;
  out.cache_types = decoder_.cache_types();
  out.cache_token_bytes = plan_.token_bytes;
  out.full_sequences = plan_.full_sequences;
  out.block_size = copy_rows_.rows;
  out.max_sequences = max_sequences_;
  out.preemptions = scheduler_.preemptions();
  out.replays = backend_.replay_counts();
  if (timer_) {
    out.device = timer_->times();
    out.host_seconds = step_seconds_ - waited_seconds_ - (backend_.queues() ? 0.0 : out.device.busy);
  }
  return out;
}

}  // namespace inferno
