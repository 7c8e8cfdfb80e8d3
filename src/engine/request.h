// Requests to the engine and the events it answers with, in tokens. Text belongs to the layers above.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/token.h"

namespace inferno {

class PendingConstraint;

struct Sampling {
  float temperature = 1.0f;  // 0 is greedy
  int top_k = 0;             // 0 keeps every token
  float top_p = 1.0f;
  float min_p = 0.0f;
  float typical_p = 1.0f;
  float repetition_penalty = 1.0f;  // over prompt and answer
  float presence_penalty = 0.0f;    // over the answer
  float frequency_penalty = 0.0f;   // over the answer
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<TokenId> banned;
  std::vector<TokenId> allowed;       // empty: every token
  std::optional<std::uint64_t> seed;  // if unset, the engine draws one and reports it
  std::optional<int> logprobs;        // 0: of the sampled token only; N: of the N likeliest too
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  Sampling sampling;
  int max_tokens = 0;  // 0: as many as the context holds
  // Stop tokens are not sampled before that many tokens, unless a constraint leaves nothing else.
  int min_tokens = 0;
  std::vector<TokenId> stop_tokens;  // the first one sampled ends the answer and is its last Sampled event
  int choices = 1;                   // number of answers, with seeds seed, seed + 1, …
  std::string client;                // clients take turns
  bool exceeds_queue = false;        // accepted even if the queue is full
  std::string cache_scope;           // cached prefixes are shared within a scope, never across
  bool reuse_prefix = true;          // false: compute the whole prompt, even if a prefix is cached
  // Log probabilities of the prompt's tokens, as Sampling::logprobs. No prefix is reused, and prompts take
  // more steps: each computes at most as many tokens as sequences may run.
  std::optional<int> prompt_logprobs;
  // What every answer must satisfy (engine/pending_constraint.h); null: nothing. The request is admitted once
  // it is compiled, and fails if that fails. Cancelling the request cancels compiling.
  std::shared_ptr<PendingConstraint> constraint = {};
};

enum class FinishReason { stop, length, cancelled };

struct Sampled {
  TokenId token = 0;
  float logprob = 0.0f;  // the model's own, before any setting; 0 unless logprobs were asked for
  std::vector<std::pair<TokenId, float>> alternatives;  // likeliest first
  int choice = 0;
  // With the first token of each choice, if asked for: the prompt's tokens, each given those before it. The
  // first of them has no log probability.
  std::shared_ptr<const std::vector<Sampled>> prompt = {};
};

// One for each choice.
struct Finished {
  FinishReason reason = FinishReason::stop;
  int prompt_tokens = 0;
  int cached_tokens = 0;  // prompt tokens found in the prefix cache
  int generated_tokens = 0;
  std::uint64_t seed = 0;
  double queue_seconds = 0, prompt_seconds = 0, decode_seconds = 0;
  int choice = 0;
};

// Ends the whole request.
struct Failed {
  std::string message;
  std::optional<ErrorKind> kind = {};  // if the cause is the request's constraint and it threw an Error
};

using Event = std::variant<Sampled, Finished, Failed>;

// What a request must satisfy before it is queued.
struct RequestLimits {
  int vocab = 0;
  int context = 0;
  int model_context = 0;  // the model's maximum; `context` may be less
  int max_logprobs = 20;
  int max_choices = 128;
  int max_listed = 4096;  // entries of each of logit_bias, banned, allowed and stop_tokens
};

// A prompt that leaves no room for an answer: Error{invalid_request}.
class PromptTooLong : public Error {
 public:
  // If the count is not exact, the prompt has at least that many tokens.
  PromptTooLong(std::size_t prompt_tokens, bool is_exact, const RequestLimits& limits);

  std::size_t prompt_tokens() const { return prompt_tokens_; }
  bool is_exact() const { return is_exact_; }
  int context() const { return context_; }

 private:
  std::size_t prompt_tokens_;
  bool is_exact_;
  int context_;
};

// PromptTooLong, or Error{invalid_request} naming the field, what it may be and what it was.
void check_request(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace inferno
