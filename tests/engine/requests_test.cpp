// The settings of a single request, and the ways in which it can end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "engine/engine_scene.h"
#include "engine/watched_backend.h"
#include "support/caught_error.h"

namespace inferno::testing {
namespace {

TEST(Requests, EndAtTheirLength) {
  const auto engine = make_engine({});
  const Answer answer = generate(*engine, greedy({1, 2, 3}, 7));
  EXPECT_EQ(answer.tokens.size(), 7u);
  EXPECT_EQ(answer.finished->reason, FinishReason::length);
  EXPECT_EQ(answer.finished->prompt_tokens, 3);
  EXPECT_EQ(answer.finished->generated_tokens, 7);
}

TEST(Requests, EndWithTheContext) {
  for (const int context : {40, 64}) {  // 64: the last token fills the last block
    SceneOptions options;
    options.context = context;
    const auto engine = make_engine(options);
    EXPECT_EQ(engine->context(), context);
    for (int i = 0; i < 2; ++i) {
      const Answer answer = generate(*engine, greedy({1, 2, 3}, 0));
      ASSERT_TRUE(answer.finished.has_value()) << answer.failed.value_or("");
      EXPECT_EQ(answer.tokens.size(), static_cast<std::size_t>(context - 3));
      EXPECT_EQ(answer.finished->reason, FinishReason::length);
    }
  }
}

TEST(Requests, WakeTheirReadersOnceAllTokensOfAStepAreThere) {
  auto engine = make_engine({});
  struct Reader {
    std::shared_ptr<TokenStream> stream;
    int tokens = 0;
    bool has_ended = false;
  };
  std::array<Reader, 2> readers;
  std::set<int> leads;  // of the first answer before the second, in tokens, whenever one of them is woken
  std::promise<void> submitted, ended;
  bool is_told = false;
  const std::shared_future<void> all_submitted = submitted.get_future();
  const auto look = [&] {
    all_submitted.wait();
    for (Reader& reader : readers) {
      while (const auto event = reader.stream->next(std::chrono::milliseconds(0))) {
        if (std::holds_alternative<Sampled>(*event))
          ++reader.tokens;
        else
          reader.has_ended = true;
      }
    }
    if (readers[0].has_ended && readers[1].has_ended && !std::exchange(is_told, true)) ended.set_value();
    if (readers[1].tokens == 0 || readers[0].has_ended || readers[1].has_ended) return;
    leads.insert(readers[0].tokens - readers[1].tokens);
  };
  readers[0].stream = engine->submit(greedy(counted_prompt(3), 40), look);
  readers[1].stream = engine->submit(greedy(counted_prompt(5), 40), look);
  submitted.set_value();
  ended.get_future().wait();
  engine.reset();  // `look` is not running any more
  EXPECT_EQ(leads.size(), 1u);
  EXPECT_EQ(readers[0].tokens, 40);
  EXPECT_EQ(readers[1].tokens, 40);
}

TEST(Requests, EndAtAnyOfTheirStopTokens) {
  const auto engine = make_engine({});
  const Answer whole = generate(*engine, greedy({5, 6}, 10));
  GenerationRequest request = greedy({5, 6}, 10);
  request.stop_tokens = {-7, whole.tokens[3], 12345};
  const Answer answer = generate(*engine, request);
  const auto end = std::find(whole.tokens.begin(), whole.tokens.end(), whole.tokens[3]) + 1;
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(whole.tokens.begin(), end));
  EXPECT_EQ(answer.finished->reason, FinishReason::stop);
}

TEST(Requests, AreNotStoppedBeforeTheirMinimum) {
  for (const bool ahead : {false, true}) {
    SceneOptions options;
    options.engine.plans_ahead = ahead;
    const auto engine = make_engine(options);
    const Answer whole = generate(*engine, greedy({5, 6}, 10));
    GenerationRequest request = greedy({5, 6}, 10);
    request.min_tokens = 4;
    request.stop_tokens = {-7, 12345};
    request.sampling.logit_bias = {{7, 50.0f}};
    request.stop_tokens.push_back(7);
    const Answer answer = generate(*engine, request);
    ASSERT_EQ(answer.tokens.size(), 5u);
    EXPECT_EQ(std::vector<TokenId>(answer.tokens.begin(), answer.tokens.begin() + 4),
              std::vector<TokenId>(whole.tokens.begin(), whole.tokens.begin() + 4));
    EXPECT_EQ(answer.tokens.back(), 7);
    EXPECT_EQ(answer.finished->reason, FinishReason::stop);
  }
}

TEST(Requests, HaveTheLogProbabilitiesOfTheirPrompt) {
  SceneOptions options;
  options.engine.max_sequences = 5;  // hence five rows of logits
  const auto engine = make_engine(options);
  const std::vector<TokenId> prompt = {7, 3, 3, 9, 50, 2, 8, 61, 4, 1, 0, 33, 5};
  const auto logprob = [&](std::size_t at) {  // of prompt[at], as the only token that may be sampled
    GenerationRequest request = greedy({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(at)}, 1);
    request.sampling.allowed = {prompt[at]};
    request.sampling.logprobs = 0;
    return generate(*engine, request).logprobs.at(0);
  };
  const Answer plain = generate(*engine, greedy(prompt, 6));
  generate(*engine, greedy(prompt, 6));  // its prefix is cached, and not reused below
  GenerationRequest request = greedy(prompt, 6);
  request.choices = 2;
  request.prompt_logprobs = 2;
  const auto decoding = engine->submit(greedy({1, 2}, 200));
  const auto stream = engine->submit(request);
  std::vector<std::vector<TokenId>> tokens(2);
  while (const auto event = stream->next(std::chrono::seconds(10))) {
    const auto* sampled = std::get_if<Sampled>(&*event);
    if (sampled == nullptr) continue;
    std::vector<TokenId>& own = tokens.at(static_cast<std::size_t>(sampled->choice));
    EXPECT_EQ(sampled->prompt != nullptr, own.empty());
    own.push_back(sampled->token);
    if (!sampled->prompt) continue;
    ASSERT_EQ(sampled->prompt->size(), prompt.size());
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      const Sampled& scored = (*sampled->prompt)[i];
      EXPECT_EQ(scored.token, prompt[i]);
      if (i == 0) continue;
      EXPECT_NEAR(scored.logprob, logprob(i), std::max(1e-3f, model_backend().tie)) << i;
      ASSERT_EQ(scored.alternatives.size(), 2u);
      EXPECT_GE(scored.alternatives[0].second, scored.logprob);
    }
  }
  EXPECT_EQ(tokens[0].size(), plain.tokens.size());
  if (model_backend().promises_bits) {  // the prompt was computed in other chunks
    EXPECT_EQ(tokens[0], plain.tokens);
    EXPECT_EQ(tokens[1], plain.tokens);
  }
  decoding->cancel();
}

TEST(Requests, ComputeTheWholePromptIfToldTo) {
  const auto engine = make_engine({});
  GenerationRequest request = greedy(counted_prompt(80), 2);
  generate(*engine, request);
  EXPECT_GT(generate(*engine, request).finished->cached_tokens, 0);
  request.reuse_prefix = false;
  EXPECT_EQ(generate(*engine, request).finished->cached_tokens, 0);
}

TEST(Requests, AreRefusedWithTheNumbersWhenTheyCanNeverFit) {
  SceneOptions options;
  options.engine.cache_bytes = cache_bytes_for(options, 64);
  const auto engine = make_engine(options);
  EXPECT_EQ(engine->context(), 64);  // the cache holds less than the model's context
  const Error error = caught_error([&] { engine->submit(greedy(std::vector<TokenId>(64, 1), 5)); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_NE(std::string(error.what()).find("64 tokens"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("context of 64"), std::string::npos) << error.what();
  EXPECT_EQ(generate(*engine, greedy(std::vector<TokenId>(63, 1), 5)).tokens.size(), 1u);
}

TEST(Requests, AreRefusedWhenASettingIsOutOfRange) {
  const auto engine = make_engine({});
  const auto refused = [&](auto&& change) {
    GenerationRequest request = greedy({1, 2}, 3);
    change(request);
    EXPECT_EQ(caught_error([&] { engine->submit(request); }).kind(), ErrorKind::invalid_request);
  };
  refused([](auto& r) { r.prompt.clear(); });
  refused([](auto& r) { r.prompt = {scene_vocab}; });
  refused([](auto& r) { r.prompt = {-1}; });
  refused([](auto& r) { r.max_tokens = -1; });
  refused([](auto& r) { r.min_tokens = -1; });
  refused([](auto& r) { r.prompt_logprobs = 21; });
  refused([](auto& r) { r.choices = 0; });
  refused([](auto& r) { r.choices = 129; });
  refused([](auto& r) { r.sampling.temperature = -0.1f; });
  refused([](auto& r) { r.sampling.temperature = std::nanf(""); });
  refused([](auto& r) { r.sampling.top_k = -1; });
  refused([](auto& r) { r.sampling.top_p = 0.0f; });
  refused([](auto& r) { r.sampling.top_p = 1.5f; });
  refused([](auto& r) { r.sampling.min_p = -0.5f; });
  refused([](auto& r) { r.sampling.typical_p = 0.0f; });
  refused([](auto& r) { r.sampling.repetition_penalty = 0.0f; });
  refused([](auto& r) { r.sampling.presence_penalty = INFINITY; });
  refused([](auto& r) { r.sampling.frequency_penalty = -INFINITY; });
  refused([](auto& r) { r.sampling.logit_bias = {{scene_vocab, 1.0f}}; });
  refused([](auto& r) { r.sampling.logit_bias = {{1, std::nanf("")}}; });
  refused([](auto& r) { r.sampling.logit_bias.assign(5000, {1, 1.0f}); });
  refused([](auto& r) { r.sampling.banned = {-3}; });
  refused([](auto& r) { r.sampling.allowed = {scene_vocab}; });
  refused([](auto& r) { r.sampling.logprobs = 21; });
  EXPECT_EQ(generate(*engine, greedy({1, 2}, 3)).tokens.size(), 3u);
}

TEST(Requests, AreRefusedWhenTheQueueIsFull) {
  SceneOptions options;
  options.engine.max_sequences = 1;
  options.engine.max_waiting = 2;
  const auto engine = make_engine(options, watched);
  watch().step_milliseconds = 20;
  std::vector<std::shared_ptr<TokenStream>> streams;
  streams.push_back(engine->submit(greedy({1}, 200)));
  while (engine->stats().running == 0) std::this_thread::yield();
  for (int i = 0; i < 2; ++i) streams.push_back(engine->submit(greedy({1}, 2)));
  const Error error = caught_error([&] { engine->submit(greedy({1}, 2)); });
  EXPECT_EQ(error.kind(), ErrorKind::overloaded);
  EXPECT_EQ(engine->stats().waiting, 2);
  streams[0]->cancel();
  watch().step_milliseconds = 0;
  for (const auto& stream : streams) read(*stream);
  EXPECT_EQ(generate(*engine, greedy({1}, 2)).tokens.size(), 2u);
}

// While a step is computed, the requests that it admitted are neither waiting nor counted twice.
TEST(Requests, OfABurstFillTheSlotsAndTheQueueAndNoMore) {
  for (const int choices : {1, 2}) {
    SceneOptions options;
    options.engine.max_sequences = 2;
    options.engine.max_waiting = 3;
    const auto engine = make_engine(options, watched);
    watch().step_milliseconds = 5;
    GenerationRequest request = greedy({1}, 200);
    request.choices = choices;
    for (int burst = 0; burst < 5; ++burst) {
      std::vector<std::shared_ptr<TokenStream>> streams;
      for (int i = 0; i < 40; ++i) {
        try {
          streams.push_back(engine->submit(request));
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::overloaded);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_LE(streams.size(), 5u) << "burst " << burst;
      EXPECT_EQ(engine->stats().waiting, 3);
      for (const auto& stream : streams) stream->cancel();
      while (engine->stats().running + engine->stats().waiting > 0) std::this_thread::yield();
    }
    watch().step_milliseconds = 0;
  }
}

TEST(Requests, OfAClientThatHasNoneInTheFullQueueAreAccepted) {
  SceneOptions options;
  options.engine.max_sequences = 1;
  options.engine.max_waiting = 2;
  const auto engine = make_engine(options, watched);
  watch().step_milliseconds = 20;
  const auto of = [](const char* client, int tokens) {
    GenerationRequest request = greedy({1}, tokens);
    request.client = client;
    return request;
  };
  std::vector<std::shared_ptr<TokenStream>> streams;
  streams.push_back(engine->submit(of("many", 200)));
  while (engine->stats().running == 0) std::this_thread::yield();
  for (const char* client : {"many", "many", "first", "second"}) {
    EXPECT_NO_THROW(engine->check_room(client)) << client;
    streams.push_back(engine->submit(of(client, 2)));
  }
  for (const char* client : {"many", "first", "third"}) {  // at twice the limit no request is accepted
    EXPECT_EQ(caught_error([&] { engine->check_room(client); }).kind(), ErrorKind::overloaded) << client;
    EXPECT_EQ(caught_error([&] { engine->submit(of(client, 2)); }).kind(), ErrorKind::overloaded) << client;
  }
  GenerationRequest urgent = of("many", 2);
  urgent.exceeds_queue = true;
  streams.push_back(engine->submit(urgent));
  streams[0]->cancel();
  watch().step_milliseconds = 0;
  for (const auto& stream : streams) read(*stream);
  EXPECT_EQ(engine->stats().waiting, 0);
}

TEST(Requests, KeepToTheirLists) {
  const auto engine = make_engine({});
  GenerationRequest request = greedy({3, 4, 5}, 30);
  request.sampling.temperature = 1.5f;
  request.sampling.seed = 9;
  request.sampling.allowed = {10, 20, 30, 40, 20};
  request.sampling.banned = {30};
  const Answer answer = generate(*engine, request);
  ASSERT_EQ(answer.tokens.size(), 30u);
  for (const TokenId token : answer.tokens) EXPECT_TRUE(token == 10 || token == 20 || token == 40) << token;
  request.sampling.logit_bias = {{20, 1000.0f}};
  EXPECT_EQ(generate(*engine, request).tokens, std::vector<TokenId>(30, 20));
}

TEST(Requests, FailAloneWhenNoTokenIsLeftOrALogitIsNotFinite) {
  const auto engine = make_engine({}, watched);
  const Answer expected = generate(*engine, greedy({8, 9}, 20));
  const auto good = engine->submit(greedy({8, 9}, 20));
  GenerationRequest poisoned = greedy({1, 2, 3}, 20);
  poisoned.sampling.top_k = poisoned_top_k;
  poisoned.choices = 2;
  const auto bad = engine->submit(poisoned);
  GenerationRequest cornered = greedy({1, 2, 3}, 20);
  cornered.sampling.allowed = cornered.sampling.banned = {4};
  const auto none = engine->submit(cornered);
  EXPECT_EQ(read(*good)[0].tokens, expected.tokens);
  EXPECT_NE(read(*bad, 2)[0].failed->find("not a finite number"), std::string::npos);
  EXPECT_NE(read(*none)[0].failed->find("no token left to sample"), std::string::npos);
  wait_until_idle(*engine);
  EXPECT_EQ(engine->stats().free_blocks, engine->stats().blocks);
  EXPECT_TRUE(engine->healthy());
}

TEST(Requests, ReportTheSeedThatWasDrawn) {
  const auto engine = make_engine({});
  GenerationRequest request = greedy({8, 9}, 20);
  request.sampling.temperature = 1.0f;
  const Answer first = generate(*engine, request), other = generate(*engine, request);
  EXPECT_NE(first.finished->seed, other.finished->seed);
  request.sampling.seed = first.finished->seed;
  EXPECT_EQ(generate(*engine, request).tokens, first.tokens);
}

TEST(Requests, GetAsManyChoicesAsTheyAskFor) {
  for (const int sequences : {1, 3, 8}) {
    SceneOptions options;
    options.engine.max_sequences = sequences;
    const auto engine = make_engine(options);
    GenerationRequest request = greedy({8, 9, 10, 11, 12}, 20);
    request.prompt.resize(70, 6);
    request.sampling.temperature = 1.0f;
    request.sampling.seed = 100;
    request.choices = 5;
    const std::vector<Answer> answers = read(*engine->submit(request), 5);
    request.choices = 1;
    for (int i = 0; i < 5; ++i) {
      request.sampling.seed = static_cast<std::uint64_t>(100 + i);
      const Answer alone = generate(*engine, request);
      EXPECT_EQ(alone.tokens.size(), answers[static_cast<std::size_t>(i)].tokens.size());
      // Elsewhere the sums of a batch are not those of a single row: cuda_batching_test.cpp says what holds.
      if (model_backend().promises_bits) {
        EXPECT_EQ(alone.tokens, answers[static_cast<std::size_t>(i)].tokens);
      }
      EXPECT_EQ(answers[static_cast<std::size_t>(i)].finished->seed, request.sampling.seed);
    }
  }
}

TEST(Requests, SayHowMuchOfTheirPromptWasCached) {
  const auto engine = make_engine({});
  Random random(1);
  GenerationRequest request = greedy(random_prompt(random, 150), 2);
  EXPECT_EQ(generate(*engine, request).finished->cached_tokens, 0);
  EXPECT_EQ(generate(*engine, request).finished->cached_tokens, 128);
  request.prompt[100] ^= 1;
  EXPECT_EQ(generate(*engine, request).finished->cached_tokens, 96);
  request.cache_scope = "another";
  EXPECT_EQ(generate(*engine, request).finished->cached_tokens, 0);
  EXPECT_EQ(engine->stats().cached_tokens, 224u);
}

TEST(Requests, AskForLogProbabilities) {
  const auto engine = make_engine({});
  GenerationRequest request = greedy({8, 9}, 5);
  request.sampling.logprobs = 3;
  const auto stream = engine->submit(request);
  int tokens = 0;
  while (const auto event = stream->next(std::chrono::seconds(10))) {
    const auto* sampled = std::get_if<Sampled>(&*event);
    if (sampled == nullptr) continue;
    ++tokens;
    ASSERT_EQ(sampled->alternatives.size(), 3u);
    EXPECT_EQ(sampled->alternatives[0].first, sampled->token);  // greedy
    EXPECT_EQ(sampled->alternatives[0].second, sampled->logprob);
    EXPECT_GE(sampled->alternatives[0].second, sampled->alternatives[1].second);
    EXPECT_LT(sampled->logprob, 0.0f);
  }
  EXPECT_EQ(tokens, 5);
}

}  // namespace
}  // namespace inferno::testing
