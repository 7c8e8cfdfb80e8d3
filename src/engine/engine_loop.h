// The work of the engine's thread: requests in, one step at a time, events out. Owned and called by one
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/engine_options.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/token_stream.h"
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
  // `pending` counts requests that have not begun: submit() adds to it, the loop subtracts.
  EngineLoop(Backend& backend, Decoder& decoder, const EngineOptions& options, const CachePlan& plan,
             std::atomic<int>& pending);

  void accept(Submission submission);
  // Ends cancelled requests, then computes one step; the following step may already be queued when it
  // returns. False if there was nothing to do.
  bool step();
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
    int cached = 0;
    int generated = 0;
    bool finished = false;
    Clock::time_point first_token = {};
  };
  struct Job {  // one request
    std::shared_ptr<TokenStream> stream;
    int prompt_tokens = 0;
    bool begun = false;  // in at least one step
    Clock::time_point submitted = {}, started = {};
    std::vector<Choice> choices;
  };

  // A step that was queued and whose tokens were not read yet.
  struct QueuedStep {
    StepPlan plan;
    Draws draws = {};
    bool is_complete = true;  // none of its sequences was removed since
  };

  void sweep_cancelled();
  QueuedStep queue_step(StepPlan plan, StepTokens tokens);
  std::optional<QueuedStep> queue_ahead();
  void finish_step(QueuedStep& step);
  void discard_removed(QueuedStep& step);
  void mark_begun(const StepPlan& plan);
  void copy_blocks(const std::vector<BlockCopy>& copies);
  Matrix forward(const StepPlan& plan, StepTokens tokens);
  Draws draw(const StepPlan& plan, StepTokens tokens, Matrix logits);
  template <class Keep>
  static void keep_slices(StepPlan& plan, std::vector<Drawn>& drawn, const Keep& keeps);
  void drop_failed(StepPlan& plan, std::vector<Drawn>& drawn);
  void publish(const std::vector<Progress>& progress, const std::vector<Drawn>& drawn);
  void finish(Choice& choice, FinishReason reason);
  void end(Job& job, const std::string& failure);
  void drop(Job& job);
  void no_longer_pending(Job& job);

  Backend& backend_;
  Decoder& decoder_;
  std::atomic<int>& pending_;
  bool plans_ahead_;
  CachePlan plan_;
  std::vector<std::size_t> group_of_layer_;
  KvCache cache_;
  StepBuffers buffers_;
  Sampler sampler_;
  Buffer copy_memory_;
  Matrix copy_rows_;  // i32 [block_size, 1]
  Scheduler scheduler_;
  std::optional<QueuedStep> queued_;
  SequenceId next_id_ = 1;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::unordered_map<SequenceId, Choice*> choices_;  // not finished
  EngineStats totals_;
};

}  // namespace inferno
