// Functions of inferno.h called by several threads at the same time, rightly and wrongly. For the thread
// sanitizer, and for locks.
#include <atomic>
#include <functional>
#include <string_view>
#include <thread>

#include "library/misuse_scene.h"
#include "support/temporary_directory.h"

namespace inferno::library {
namespace {

TEST(Threads, TwoMayCallEveryFunctionAtTheSameTime) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const Handles handles = {model, request, ask(model, short_request)};
  const auto call_all = [&] {
    for (const auto& [name, call] : calls_with(handles, model, request)) {
      const std::string_view function = name;
      if (function == "unload" || function.starts_with("free ")) continue;
      if (function == "add_message") continue;  // the request has a prompt
      EXPECT_EQ(call(nullptr), INFERNO_OK) << name;
      if (function == "copy") {
        EXPECT_EQ(inferno_request_free(written.copy, nullptr), INFERNO_OK);
      }
      if (function.starts_with("ask")) {
        EXPECT_EQ(inferno_answer_free(written.answer, nullptr), INFERNO_OK);
      }
    }
  };
  std::thread other(call_all);
  call_all();
  other.join();
  EXPECT_EQ(inferno_answer_free(handles.answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Threads, TwoMayCallFunctionsWithoutHandlesAtTheSameTime) {
  const TemporaryDirectory cache;
  const auto call_all = [&] {
    for (const auto& [name, call] : calls_without_handles(cache.path().string())) {
      Report report;
      EXPECT_EQ(call(&report), INFERNO_OK) << name << ": " << report.text();
      if (std::string_view(name) == "load") {
        EXPECT_EQ(inferno_model_unload(loaded, nullptr), INFERNO_OK);
      } else if (std::string_view(name) == "request_new" || std::string_view(name) == "from_json") {
        EXPECT_EQ(inferno_request_free(written.copy, nullptr), INFERNO_OK);
      }
    }
  };
  std::thread other(call_all);
  call_all();
  other.join();
}

// Both threads do the same with the same handle; one succeeds, for the other the handle is stale.
void expect_one_success(const std::function<inferno_status()>& call) {
  inferno_status results[2] = {};
  std::thread other([&] { results[0] = call(); });
  results[1] = call();
  other.join();
  EXPECT_EQ(results[0] + results[1], INFERNO_OK + INFERNO_INVALID_REQUEST);
}

TEST(Threads, TwoFreeTheSameHandleAndOneSucceeds) {
  for (int round = 0; round < 20; ++round) {
    const inferno_model model = load();
    const inferno_request request = request_of(short_request);
    const inferno_answer answer = ask(model, long_request);
    expect_one_success([&] { return inferno_request_free(request, nullptr); });
    expect_one_success([&] { return inferno_answer_free(answer, nullptr); });
    expect_one_success([&] { return inferno_model_unload(model, nullptr); });
  }
}

// The handles of the moment, which another thread frees and makes again.
struct Changing {
  std::atomic<std::uint64_t> model = 0, request = 0, other_request = 0, answer = 0;
  std::atomic<bool> is_over = false;
  std::atomic<int> successes = 0;
};

// Every function but those that free, over and over.
void call_everything(Changing& changing) {
  while (!changing.is_over.load()) {
    const inferno_model model = {changing.model.load()};
    const inferno_request request = {changing.request.load()};
    const Handles handles = {model, {changing.other_request.load()}, {changing.answer.load()}};
    for (const auto& [name, call] : calls_with(handles, model, request)) {
      const std::string_view function = name;
      if (function == "unload" || function.starts_with("free ")) continue;
      const inferno_status status = call(nullptr);
      EXPECT_TRUE(status == INFERNO_OK || status == INFERNO_INVALID_REQUEST)
          << name << ": " << inferno_status_name(status);
      if (status != INFERNO_OK) continue;
      ++changing.successes;
      if (function == "copy") inferno_request_free(written.copy, nullptr);
      if (function.starts_with("ask")) inferno_answer_free(written.answer, nullptr);
    }
  }
}

TEST(Threads, TwoMayCallEverythingWhileAThirdUnloadsFreesAndReloads) {
  constexpr int rounds = 12;
  Changing changing;
  std::thread one([&] { call_everything(changing); }), two([&] { call_everything(changing); });
  for (int round = 0; round < rounds; ++round) {
    const inferno_model model = load(tiny_model, /*parallel=*/2);
    const inferno_request request = request_of(short_request), other_request = request_of("{}");
    const inferno_answer answer = ask(model, long_request);
    changing.model.store(model.id);
    changing.request.store(request.id);
    changing.other_request.store(other_request.id);
    changing.answer.store(answer.id);
    const int before = changing.successes.load();
    while (changing.successes.load() < before + 40) std::this_thread::yield();
    if (round % 2 == 0) {
      EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
    }
    EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
    if (round % 2 == 1) {
      EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
    }
    for (const inferno_request made : {request, other_request}) {
      EXPECT_EQ(inferno_request_free(made, nullptr), INFERNO_OK);
    }
  }
  changing.is_over.store(true);
  one.join();
  two.join();
}

}  // namespace
}  // namespace inferno::library
