// Timing a decoder as `bench` does: prompts and generation, at a depth, for a batch.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"
#include "model/load.h"
#include "model/runner.h"

namespace inferno {

struct Measurement {
  std::string test;  // llama-bench's names: pp512, tg128, tg128 @ d2048
  int batch = 1;
  int tokens = 0;               // per sequence and run
  int depth = 0;                // tokens in the cache before the run
  std::vector<double> seconds;  // of each run
  double bytes_per_step = 0.0;  // read while decoding one step: weights and cache
  // Of constrained answers: time spent on masks, in all runs and at most in one step.
  double mask_seconds = 0.0, max_mask_seconds = 0.0;
  double tokens_per_second() const;
  double deviation() const;  // of tokens per second between runs
};

// Runs `batch` sequences through a decoder. Tokens are sampled on the device and read by the host; if the
// backend queues, each is read while the next step runs, as in the engine.
class Measurer {
 public:
  Measurer(Decoder& decoder, Backend& backend, int batch, int context, const Sampling& sampling);

  Measurement prompt(int tokens, int repeat);
  // Repeats the last token of a generation of that length and depth, for a profiler.
  void profile(int tokens, int depth);
  // `weight_bytes`: weights that one step reads.
  Measurement generate(int tokens, int depth, int repeat, double weight_bytes);

 private:
  void allocate_sampling(const Sampling& sampling);
  void prefill(int tokens);
  void queue_step(std::span<const std::vector<TokenId>> inputs, int start, StepTokens from,
                  bool wants_logits);
  void read_tokens(std::size_t left);
  void decode(int tokens, int start);

  Decoder& decoder_;
  Backend& backend_;
  int batch_;
  BatchRunner runner_;
  std::vector<Buffer> memory_;
  SamplingInputs sampling_;
  Matrix drawn_[2];           // i32 [batch, sample_columns(0)], for two steps in turn
  std::deque<Draws> unread_;  // of queued steps
  std::size_t turn_ = 0;
  std::vector<TokenId> next_;
};

// What answers must satisfy, and the word for it in the names of tests.
struct MeasuredConstraint {
  std::string name;
  std::shared_ptr<PendingConstraint> constraint;
};

// Measures generation through the engine, as users experience it: requests are submitted together and their
// tokens read as they arrive.
class EngineMeasurer {
 public:
  EngineMeasurer(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder, int max_streams,
                 Sampling sampling);

  // From a prompt of one token. The clock starts with the first token of each run. An answer that a
  // constraint ends early is followed by another one, until its stream has had its tokens.
  Measurement generate(int streams, int tokens, int repeat, double weight_bytes,
                       const MeasuredConstraint& constraint = {});
  // Every second stream is constrained. The time is that of the free ones: the rate is the one of as many
  // streams as fast as they are.
  Measurement generate_half(int streams, int tokens, int repeat, double weight_bytes,
                            const std::shared_ptr<PendingConstraint>& constraint);

 private:
  // The constraint of each stream, nullptr for free ones.
  using Constraints = std::vector<std::shared_ptr<PendingConstraint>>;
  Measurement measure(Measurement out, int repeat, const Constraints& constraints);
  double run(int tokens, const Constraints& constraints);
  std::shared_ptr<TokenStream> submit(int stream, int tokens,
                                      const std::shared_ptr<PendingConstraint>& constraint);

  int vocab_;
  Sampling sampling_;
  Engine engine_;
};

}  // namespace inferno
