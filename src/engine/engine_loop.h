// The work of the engine's thread: requests in, one step at a time, events out. Owned and called by one
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "engine/constrained_answer.h"
#include "engine/engine_options.h"
#include "engine/pending_constraint.h"
#include "engine/prompt_budget.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/token_stream.h"
#include "engine/waiting_count.h"
#include "model/decoder.h"
#include "model/footprint.h"
#include "model/kv_cache.h"
#include "model/step.h"

namespace inferno {

// A request that passed check_request().
struct Submission {
  GenerationRequest request;
  std::uint64_t seed = 0;
  std::shared_ptr<TokenStream> stream;
  std::chrono::steady_clock::time_point submitted;
};

class EngineLoop {
 public:
  // `waiting` counts requests that have not begun, to which submit() adds, and answers to those that have.
  EngineLoop(Backend& backend, Decoder& decoder, const EngineOptions& options, const CachePlan& plan,
             WaitingCount& waiting);

  void accept(Submission submission);
  // Ends cancelled requests, then computes one step; the following step may already be queued when it
  // returns. False if there was nothing to do.
  bool step();
  // Whether a request waits for its constraint to be compiled: step() should be called again soon.
  bool awaits_constraint() const;
  void drop_idle_prefixes() { scheduler_.drop_idle_prefixes(); }
  // Ends every stream with a Failed event.
  void fail_all(const std::string& message);
  EngineStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Job;
  struct Choice {  // one answer to a request
    Job* job = nullptr;
    SequenceId id = 0;
    int index = 0;
    SamplingState sampling;
    std::unique_ptr<ConstrainedAnswer> constraint = {};  // null: any text
    int min_end = 0;                                     // position before which it does not stop
    int cached = 0;
    int generated = 0;
    bool finished = false;
    Clock::time_point first_token = {};
  };
  struct Job {  // one request
    std::shared_ptr<TokenStream> stream;
    std::string client;
    int prompt_tokens = 0;
    bool begun = false;  // in at least one step
    Clock::time_point submitted = {}, started = {};
    std::vector<Choice> choices;
    // While its constraint is compiled: not known to the scheduler yet.
    std::shared_ptr<PendingConstraint> pending = {};
    std::vector<std::unique_ptr<Sequence>> held = {};
    // If they are asked for.
    std::shared_ptr<std::vector<Sampled>> prompt_scores = {};
    int prompt_alternatives = 0;
    SampleOutcome prompt_outcome = SampleOutcome::token;
  };

  // A step that was queued and whose tokens were not read yet.
  struct QueuedStep {
    StepPlan plan;
    // Logits whose draw is not queued yet, because its masks depend on the tokens of the step before.
    Matrix undrawn = {};
    Draws draws = {};
  };

  // A mask to be filled for the token at `position`.
  struct MaskTask {
    ConstrainedAnswer* constraint = nullptr;
    std::span<std::uint32_t> mask;
    int position = 0;
  };

  std::unique_ptr<Sequence> add_choice(Job& job, const Submission& submission, int index);
  void sweep_cancelled();
  void start_compiled();
  void start_compiled(Job& job);
  // Whether the tokens of the step before were read.
  enum class Ahead : std::uint8_t { no, yes };
  QueuedStep queue_step(StepPlan plan, Ahead ahead);
  std::optional<QueuedStep> queue_ahead();
  void count(const StepPlan& plan);
  void adapt_prompt_rows(const StepPlan& plan);
  void finish_step(QueuedStep& step);
  void discard_removed(QueuedStep& step);
  void mark_begun(const StepPlan& plan);
  void copy_blocks(const std::vector<BlockCopy>& copies);
  Matrix forward(const StepPlan& plan);
  void take_scores(const StepPlan& plan, std::vector<Drawn>& drawn);
  bool has_constraint(const StepPlan& plan) const;
  Draws draw(const StepPlan& plan, Matrix logits);
  void draw_late(QueuedStep& step);
  void fill_masks(std::span<const MaskTask> tasks);
  template <class Keep>
  static void keep_slices(StepPlan& plan, std::vector<Drawn>& drawn, const Keep& keeps);
  void drop_failed(StepPlan& plan, std::vector<Drawn>& drawn);
  void take_tokens(std::vector<Progress>& progress);
  void publish(const std::vector<Progress>& progress, const std::vector<Drawn>& drawn);
  void finish(Choice& choice, FinishReason reason);
  void end(Job& job, Failed failure);
  void drop(Job& job);

  Backend& backend_;
  Decoder& decoder_;
  WaitingCount& waiting_;
  bool plans_ahead_;
  CachePlan plan_;
  int max_sequences_;
  std::vector<std::size_t> group_of_layer_;
  KvCache cache_;
  StepBuffers buffers_;
  Sampler sampler_;
  std::unique_ptr<ThreadPool> mask_threads_;  // made when they are first worth it
  Buffer copy_memory_;
  Matrix copy_rows_;  // i32 [block_size, 1]
  Scheduler scheduler_;
  PromptBudget prompt_budget_;
  std::optional<Clock::time_point> tokens_read_;      // of the step before, if it had tokens
  std::unique_ptr<StepTimer> timer_;                  // null unless EngineOptions::times_steps
  double step_seconds_ = 0.0, waited_seconds_ = 0.0;  // in step(), and of that for tokens
  std::optional<QueuedStep> queued_;
  SequenceId next_id_ = 1;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::shared_ptr<TokenStream>> published_;  // those with tokens of a step, until they are woken
  std::unordered_map<SequenceId, Choice*> choices_;      // not finished
  EngineStats totals_;
};

}  // namespace inferno
