// No device memory is allocated once the engine is ready; and how the engine ends when the device fails.
#include <gtest/gtest.h>

#include <iostream>

#include "base/error.h"
#include "checkpoint/config_json.h"
#include "engine/counted_allocations.h"
#include "engine/engine_scene.h"
#include "engine/trap.h"
#include "engine/watched_backend.h"
#include "model/load.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "support/caught_error.h"

namespace inferno::testing {
namespace {

class CudaMemory : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaMemory, IsNotAllocatedAfterTheEngineIsReady) {
  SceneOptions options;
  options.model = GetParam();
  options.engine.cache_bytes = cache_bytes_for(options, 400);
  const auto engine = make_engine(options);
  const int before = allocations().device, pinned = allocations().pinned;
  ASSERT_GT(before, 0) << "nothing is counted";
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 40; ++i) {
    GenerationRequest request = greedy(counted_prompt(1 + 6 * i), 10);
    request.choices = 1 + i % 3;
    request.sampling.repetition_penalty = 1.1f;
    if (i % 2 == 0) request.sampling.temperature = 0.8f;
    if (i % 4 == 0) request.sampling.top_p = 0.9f;
    if (i % 5 == 0) request.sampling.logprobs = 20;
    streams.push_back(engine->submit(std::move(request)));
  }
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(read(*streams[static_cast<std::size_t>(i)], 1 + i % 3)[0].finished.has_value());
  }
  EXPECT_EQ(allocations().device, before);
  std::cout << GetParam() << ": " << before << " device allocations, none of them after ready; "
            << allocations().pinned - pinned << " of pinned host memory after ready\n";
}

INSTANTIATE_TEST_SUITE_P(Models, CudaMemory, ::testing::Values("plain", "windows"),
                         [](const auto& model) { return model.param; });

// Taken from the real device: what is left over is too little, first for the plan and then for one piece.
TEST(FullDevice, RefusesAModelWithThePlanAndAnAllocationWithTheLedger) {
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  const auto backend = model_backend().make(1);
  const std::size_t free = backend->info().free_bytes;
  ASSERT_GT(free, 4 * gibibyte);
  const Buffer most = backend->allocate(free - 3 * gibibyte, "the test's own");
  const Shape& shape = shape_named("llama-3.1-8b");
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "llama-3.1-8b"), shape.type, {});
  const Error plan = caught_error(
      [&] { load_model(*checkpoint, *backend, {.max_tokens = 512, .max_logit_rows = 16, .context = 8192}); });
  EXPECT_NE(std::string(plan.what()).find("weights              16.1 GB"), std::string::npos) << plan.what();
  const Error piece = caught_error([&] { backend->allocate(5 * gibibyte, "one piece"); });
  EXPECT_EQ(piece.kind(), ErrorKind::device);
  EXPECT_NE(std::string(piece.what()).find("one piece: 5.4 GB"), std::string::npos) << piece.what();
  EXPECT_NE(std::string(piece.what()).find("the test's own"), std::string::npos) << piece.what();
  EXPECT_FALSE(piece.advice().next.empty());
  const Buffer small = backend->allocate(1 << 20, "a small one");  // a refusal breaks nothing
  EXPECT_NE(small.data(), nullptr);
}

// In a process of its own, which the broken device takes with it.
[[noreturn]] void generate_on_a_breaking_device() {
  auto engine = make_engine({}, watched);
  watch().step_milliseconds = 2;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(engine->submit(greedy(counted_prompt(5 + i), 200)));
  if (!streams[0]->next(std::chrono::seconds(20))) std::exit(1);
  trap_on_device();
  for (const auto& stream : streams) {
    const Answer answer = read(*stream)[0];
    if (!answer.failed || answer.failed->find("CUDA") == std::string::npos) std::exit(2);
    std::cerr << *answer.failed << '\n';
  }
  if (engine->healthy()) std::exit(3);
  try {
    engine->submit(greedy(counted_prompt(3), 3));
    std::exit(4);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) std::exit(5);
  }
  engine.reset();  // leaving must not hang, nor end the process another way
  constexpr int device_failed = 7;
  std::exit(device_failed);
}

TEST(BrokenDeviceDeathTest, FailsTheRunningRequestsAndLeavesAnEngineThatSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(generate_on_a_breaking_device(), ::testing::ExitedWithCode(7), "the engine failed: CUDA");
}

}  // namespace
}  // namespace inferno::testing
