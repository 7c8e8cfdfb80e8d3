// Requests to the engine and the events it answers with, in tokens. Text belongs to the layers above.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/token.h"

namespace inferno {

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
  int max_tokens = 0;                // 0: as many as the context holds
  std::vector<TokenId> stop_tokens;  // the first one sampled ends the answer and is its last Sampled event
  int choices = 1;                   // number of answers, with seeds seed, seed + 1, …
  std::string client;                // clients take turns
  std::string cache_scope;           // cached prefixes are shared within a scope, never across
};

enum class FinishReason { stop, length, cancelled };

struct Sampled {
  TokenId token = 0;
  float logprob = 0.0f;  // the model's own, before any setting; 0 unless logprobs were asked for
  std::vector<std::pair<TokenId, float>> alternatives;  // likeliest first
  int choice = 0;
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

// Error{invalid_request} naming the field, what it may be and what it was.
void check_request(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace inferno
