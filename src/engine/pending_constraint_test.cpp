#include "engine/pending_constraint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/error.h"
#include "support/caught_error.h"

namespace inferno {
namespace {

class Anything final : public Constraint {
 public:
  void fill(std::span<std::uint32_t> mask) override { std::ranges::fill(mask, ~0u); }
  void take(TokenId) override {}
  bool may_end() override { return true; }
  bool is_finished() override { return false; }
  std::unique_ptr<Constraint> fork() const override { return std::make_unique<Anything>(); }
};

// Compiles until it is told to stop.
std::unique_ptr<const Constraint> compile_forever(const std::stop_token& stop) {
  while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fail(ErrorKind::invalid_request, "stopped");
}

TEST(PendingConstraint, IsReadyWhenItIsGivenAConstraint) {
  const PendingConstraint pending(std::make_unique<Anything>());
  EXPECT_TRUE(pending.is_ready());
  EXPECT_NE(pending.get().fork(), nullptr);
}

TEST(PendingConstraint, IsCompiledOnAnotherThread) {
  ConstraintCompiler compiler(2);
  std::thread::id used;
  const auto pending = compiler.compile([&used](const std::stop_token&) {
    used = std::this_thread::get_id();
    return std::make_unique<const Anything>();
  });
  pending->wait();
  EXPECT_TRUE(pending->is_ready());
  EXPECT_NE(pending->get().fork(), nullptr);
  EXPECT_NE(used, std::this_thread::get_id());
}

TEST(PendingConstraint, ThrowsWhatCompilingThrewToEveryoneWhoAsks) {
  ConstraintCompiler compiler(1);
  const auto pending = compiler.compile([](const std::stop_token&) -> std::unique_ptr<const Constraint> {
    fail(ErrorKind::unsupported, "#/properties/a: no such keyword");
  });
  pending->wait();
  for (int i = 0; i < 2; ++i) {
    const Error error = caught_error([&] { pending->get(); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(), "#/properties/a: no such keyword");
  }
}

TEST(PendingConstraint, StopsCompilingWhenItIsCancelledOrDropped) {
  ConstraintCompiler compiler(1);
  const auto cancelled = compiler.compile(compile_forever);
  EXPECT_FALSE(cancelled->is_ready());
  cancelled->cancel();
  cancelled->wait();
  EXPECT_THROW(cancelled->get(), Error);
  compiler.compile(compile_forever);  // the only reference goes at once
  const auto next =
      compiler.compile([](const std::stop_token&) { return std::make_unique<const Anything>(); });
  next->wait();
  EXPECT_NE(next->get().fork(), nullptr);
}

TEST(PendingConstraint, OneThatWasCancelledInTheQueueIsNeverCompiled) {
  std::atomic<bool> was_compiled = false;
  ConstraintCompiler compiler(1);
  const auto running = compiler.compile(compile_forever);
  const auto waiting = compiler.compile([&](const std::stop_token&) {
    was_compiled = true;
    return std::make_unique<const Anything>();
  });
  waiting->cancel();
  running->cancel();
  waiting->wait();
  EXPECT_FALSE(was_compiled);
  EXPECT_EQ(caught_error([&] { waiting->get(); }).kind(), ErrorKind::invalid_request);
}

TEST(PendingConstraint, OutlivesTheCompilerWithAnError) {
  std::vector<std::shared_ptr<PendingConstraint>> pending;
  {
    ConstraintCompiler compiler(2);
    for (int i = 0; i < 5; ++i) pending.push_back(compiler.compile(compile_forever));
  }
  for (const auto& one : pending) {
    EXPECT_TRUE(one->is_ready());
    EXPECT_THROW(one->get(), Error);
  }
}

}  // namespace
}  // namespace inferno
