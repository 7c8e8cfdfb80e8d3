#include "engine/engine_scene.h"

#include <gtest/gtest.h>

#include <thread>

#include "checkpoint/config_json.h"
#include "model/kv_cache.h"
#include "model/load.h"
#include "model/synthetic/random_checkpoint.h"
#include "spec/window_groups.h"

namespace inferno::testing {
namespace {

struct Model {
  std::string_view type, config;
};

// Widths and heads are multiples of 32, so that weights and caches can be quantized; the second alternates
// windows of 24 tokens with full attention.
Model model_named(const std::string& name) {
  if (name == "plain") {
    return {"llama", R"({"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 100, "rms_norm_eps": 1e-5,
      "max_position_embeddings": 4096})"};
  }
  return {"gpt_oss", R"({"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 100,
      "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "num_local_experts": 4,
      "num_experts_per_tok": 2, "sliding_window": 24, "rope_theta": 10000.0, "swiglu_limit": 7.0,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"};
}

std::unique_ptr<Checkpoint> checkpoint_of(const std::string& name) {
  const Model model = model_named(name);
  return random_checkpoint(
      parse_config(model.config, "test"), model.type,
      {.dense = name == "plain" ? WeightFormat::q8_0 : WeightFormat::bf16, .experts = WeightFormat::mxfp4});
}

}  // namespace

std::unique_ptr<Engine> make_engine(const SceneOptions& options, Wrap wrap) {
  const auto checkpoint = checkpoint_of(options.model);
  std::unique_ptr<Backend> backend = options.backend(options.threads);
  if (wrap != nullptr) backend = wrap(std::move(backend));
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = options.step_tokens,
                                  .max_logit_rows = options.sequences,
                                  .context = options.context,
                                  .cache = options.cache});
  return std::make_unique<Engine>(std::move(backend), std::move(model.decoder), options.engine);
}

std::size_t cache_bytes_for(const SceneOptions& options, int tokens) {
  const auto checkpoint = checkpoint_of(options.model);
  const ModelSpec spec = describe_model(*checkpoint).spec;
  std::size_t bytes = 0;
  for (const int window : window_groups(spec))
    bytes += cache_bytes_per_token(spec, window, options.cache.with_default(model_backend().cache));
  return bytes * static_cast<std::size_t>(tokens);
}

std::vector<Answer> read(TokenStream& stream, int choices) {
  std::vector<Answer> answers(static_cast<std::size_t>(choices));
  while (const auto event = stream.next(std::chrono::seconds(60))) {
    if (const auto* sampled = std::get_if<Sampled>(&*event)) {
      Answer& answer = answers[static_cast<std::size_t>(sampled->choice)];
      answer.tokens.push_back(sampled->token);
      answer.logprobs.push_back(sampled->logprob);
    } else if (const auto* finished = std::get_if<Finished>(&*event)) {
      answers[static_cast<std::size_t>(finished->choice)].finished = *finished;
    } else {
      for (Answer& answer : answers) answer.failed = std::get<Failed>(*event).message;
    }
  }
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.finished.has_value() || answer.failed.has_value()) << "the stream did not end";
  }
  return answers;
}

Answer generate(Engine& engine, GenerationRequest request) {
  return read(*engine.submit(std::move(request)))[0];
}

std::vector<TokenId> random_prompt(Random& random, int length) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(random.below(scene_vocab));
  return prompt;
}

std::vector<TokenId> counted_prompt(int length) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(i % scene_vocab);
  return prompt;
}

GenerationRequest greedy(std::vector<TokenId> prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0.0f;
  return request;
}

void wait_until_idle(const Engine& engine) {
  for (int i = 0; i < 10000; ++i) {
    const EngineStats stats = engine.stats();
    if (stats.running == 0 && stats.waiting == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL() << "the engine did not become idle";
}

}  // namespace inferno::testing
