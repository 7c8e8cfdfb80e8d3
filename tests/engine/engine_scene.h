// An engine around a tiny model with random weights, and helpers for its tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/host_matrix.h"
#include "support/model_backend.h"

namespace inferno::testing {

struct SceneOptions {
  EngineOptions engine;
  std::string model = "plain";  // plain, or windows: layers of both kinds
  int context = 256;
  int threads = 2;
  int step_tokens = 512;
  int sequences = 16;
  CacheChoice cache = {};
  std::unique_ptr<Backend> (*backend)(int threads) = model_backend().make;
};

// `wrap` may put something around the backend.
using Wrap = std::unique_ptr<Backend> (*)(std::unique_ptr<Backend>);
std::unique_ptr<Engine> make_engine(const SceneOptions& options, Wrap wrap = nullptr);

// Cache bytes of `tokens` tokens in the layers of every window.
std::size_t cache_bytes_for(const SceneOptions& options, int tokens);

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::optional<Finished> finished;
  std::optional<std::string> failed;
};

// Reads a stream to its end: one Answer for each choice; a failure is in all of them.
std::vector<Answer> read(TokenStream& stream, int choices = 1);
Answer generate(Engine& engine, GenerationRequest request);

std::vector<TokenId> random_prompt(Random& random, int length);
std::vector<TokenId> counted_prompt(int length);  // 0, 1, 2, …
// Without chance.
GenerationRequest greedy(std::vector<TokenId> prompt, int max_tokens);
inline constexpr int scene_vocab = 100;

// Waits until nothing runs or waits.
void wait_until_idle(const Engine& engine);

}  // namespace inferno::testing
