// Answers whose parts go to a callback.
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "library/library_scene.h"

namespace inferno::library {
namespace {

// Threads of this process, from /proc.
int threads_now() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

// The number of threads, once it is `expected` or has not become so within a second: the kernel removes a
// thread a moment after it could be joined.
int threads_once(int expected) {
  for (int tries = 0; tries < 1000 && threads_now() != expected; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_now();
}

struct Heard {
  std::string text = {};
  int ends = 0, calls = 0, cancel_after = -1;
  inferno_status status = INFERNO_OK, refused = INFERNO_OK;
  inferno_model unload = {0};
};

std::int32_t hear(void* context, inferno_answer answer, const inferno_part* part) {
  auto& heard = *static_cast<Heard*>(context);
  if (part->kind == INFERNO_PART_CONTENT) heard.text.append(part->text, part->length);
  if (part->kind == INFERNO_PART_END) {
    ++heard.ends;
    heard.status = part->status;
  }
  if (heard.unload.id != 0) heard.refused = inferno_model_unload(heard.unload, nullptr);
  if (part->kind == INFERNO_PART_END && heard.unload.id != 0) {
    EXPECT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_INVALID_REQUEST);
  }
  return heard.calls++ == heard.cancel_after ? 1 : 0;
}

inferno_answer ask_with(Heard& heard, inferno_model model, const std::string& json) {
  const inferno_request request = request_of(json);
  inferno_answer answer = {0};
  EXPECT_EQ(inferno_ask_with_callback(model, request, hear, &heard, &answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  return answer;
}

TEST(Callbacks, CallsBackWithEveryPart) {
  const inferno_model model = load();
  Heard heard = {.unload = model};
  const inferno_answer answer = ask_with(heard, model, short_request);
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  EXPECT_EQ(heard.ends, 1);
  EXPECT_EQ(heard.text, text_of(answer));
  EXPECT_EQ(heard.refused, INFERNO_INVALID_REQUEST);  // a callback must not wait for its own thread
  auto part = sized<inferno_part>();
  EXPECT_EQ(inferno_answer_next(answer, 0, &part, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Callbacks, ACallbackCancelsByItsResult) {
  const inferno_model model = load();
  Heard heard = {.cancel_after = 1};
  const inferno_answer answer = ask_with(heard, model, long_request);
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  auto usage = sized<inferno_usage>();
  ASSERT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_OK);
  EXPECT_EQ(usage.finish, INFERNO_FINISH_CANCELLED);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Callbacks, FreeingAnAnswerEndsItsCallbacks) {
  const inferno_model model = load();
  for (int i = 0; i < 20; ++i) {
    auto heard = std::make_unique<Heard>();
    const inferno_answer answer = ask_with(*heard, model, long_request);
    ASSERT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
    heard.reset();  // a later call would read freed memory
  }
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Callbacks, FreeingAnAnswerEndsThoseWhoWaitForIt) {
  const inferno_model model = load();
  Heard heard;
  const inferno_answer answer = ask_with(heard, model, long_request);
  std::thread waiter([&] {
    const inferno_status status = inferno_answer_wait(answer, -1, nullptr, nullptr);
    EXPECT_TRUE(status == INFERNO_INVALID_REQUEST || heard.ends == 1) << status;
  });
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  waiter.join();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

// What a callback calls once, with its own answer.
struct Curious {
  inferno_model model = {0};
  inferno_request request = {0};
  inferno_answer asked = {0};
  inferno_description description = sized<inferno_description>();
  inferno_statistics statistics = sized<inferno_statistics>();
  inferno_usage usage = sized<inferno_usage>();
  char text[64] = {}, json[4096] = {};
  bool has_called = false;
};

std::int32_t call_the_library(void* context, inferno_answer answer, const inferno_part* part) {
  auto& curious = *static_cast<Curious*>(context);
  if (curious.has_called || part->kind != INFERNO_PART_CONTENT) return 0;
  curious.has_called = true;
  EXPECT_EQ(inferno_ask(curious.model, curious.request, &curious.asked, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_describe(curious.model, &curious.description, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_statistics(curious.model, &curious.statistics, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_usage(answer, &curious.usage, nullptr), INFERNO_OK);
  EXPECT_EQ(
      inferno_answer_text(answer, INFERNO_PART_CONTENT, curious.text, sizeof curious.text, nullptr, nullptr),
      INFERNO_OK);
  EXPECT_EQ(std::string(curious.text), std::string(part->text, part->length));  // as far as it was handed out
  EXPECT_EQ(inferno_answer_json(answer, curious.json, sizeof curious.json, nullptr, nullptr), INFERNO_OK);
  return 0;
}

TEST(Callbacks, MayCallWhatDoesNotWait) {
  Curious curious;
  curious.model = load();
  curious.request = request_of(short_request);
  inferno_answer answer = {0};
  ASSERT_EQ(
      inferno_ask_with_callback(curious.model, curious.request, call_the_library, &curious, &answer, nullptr),
      INFERNO_OK);
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  ASSERT_TRUE(curious.has_called);
  EXPECT_STREQ(curious.description.family, "llama");
  EXPECT_EQ(curious.statistics.healthy, 1);
  EXPECT_EQ(curious.usage.finish, INFERNO_FINISH_NONE);
  EXPECT_NE(std::string(curious.json).find("\"timings\""), std::string::npos);
  EXPECT_EQ(read_all(curious.asked), text_of(answer));  // the one that was asked in the callback
  for (const inferno_answer made : {answer, curious.asked}) {
    EXPECT_EQ(inferno_answer_free(made, nullptr), INFERNO_OK);
  }
  EXPECT_EQ(inferno_request_free(curious.request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(curious.model, nullptr), INFERNO_OK);
}

// A callback that takes its time, and counts where it is called.
struct Slow {
  std::thread::id asker = std::this_thread::get_id();
  std::atomic<int> on_asker = 0, calls = 0, after_free = 0;
  bool frees = false, is_freed = false;
};

std::int32_t dawdle(void* context, inferno_answer answer, const inferno_part* part) {
  auto& slow = *static_cast<Slow*>(context);
  ++slow.calls;
  if (slow.is_freed) ++slow.after_free;
  if (std::this_thread::get_id() == slow.asker) ++slow.on_asker;
  if (slow.frees && !slow.is_freed) {
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
    slow.is_freed = true;
  }
  if (part->kind != INFERNO_PART_END) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return 0;
}

TEST(Callbacks, AreCalledByTheEngineAndNeverByTheThreadThatAsks) {
  const inferno_model model = load();
  const inferno_request request =
      request_of(R"({"prompt": "Hello", "max_tokens": 40, "temperature": 0, "ignore_eos": true})");
  for (int round = 0; round < 5; ++round) {
    Slow slow;
    inferno_answer answer = {0};
    ASSERT_EQ(inferno_ask_with_callback(model, request, dawdle, &slow, &answer, nullptr), INFERNO_OK);
    ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
    EXPECT_EQ(slow.on_asker.load(), 0);
    EXPECT_GT(slow.calls.load(), 20);
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  }
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Callbacks, NoCallbackFollowsTheOneThatFreesTheAnswer) {
  const inferno_model model = load();
  const inferno_request request = request_of(long_request);
  Slow slow;
  slow.frees = true;
  inferno_answer answer = {0};
  ASSERT_EQ(inferno_ask_with_callback(model, request, dawdle, &slow, &answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  const inferno_answer other = ask(model, long_request);  // ends after the first one
  read_all(other);
  EXPECT_EQ(inferno_answer_free(other, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(slow.calls.load(), 1);
  EXPECT_EQ(slow.after_free.load(), 0);
}

// Asks again and again. Another thread guesses the handle of each answer and calls `act` with it, perhaps
// before asking has returned; `check` is called after that has succeeded once.
void ask_while_another_thread_calls(inferno_status (*act)(inferno_answer, inferno_error*),
                                    const std::function<void(inferno_answer)>& check) {
  constexpr int rounds = 600;
  const inferno_model model = load();
  const inferno_request request = request_of(long_request);
  std::atomic<std::uint64_t> guess = 0;
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over.load()) {
      std::uint64_t id = guess.load();
      if (id == 0) std::this_thread::yield();
      if (id != 0 && act({id}, nullptr) == INFERNO_OK) guess.compare_exchange_strong(id, 0);
    }
  });
  inferno_answer answer = ask(model, short_request);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  for (int round = 0; round < rounds; ++round) {
    Heard heard;
    guess.store(answer.id + 4);  // numbers go up by 4, whatever their kind
    EXPECT_EQ(inferno_ask_with_callback(model, request, hear, &heard, &answer, nullptr), INFERNO_OK);
    while (guess.load() != 0) std::this_thread::yield();
    check(answer);
  }
  is_over.store(true);
  other.join();
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Callbacks, AnAnswerMayBeCancelledAsSoonAsItHasAHandle) {
  ask_while_another_thread_calls(inferno_answer_cancel, [](inferno_answer answer) {
    ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
    auto usage = sized<inferno_usage>();
    ASSERT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_OK);
    EXPECT_EQ(usage.finish, INFERNO_FINISH_CANCELLED);
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  });
}

TEST(Callbacks, AnAnswerMayBeFreedAsSoonAsItHasAHandle) {
  ask_while_another_thread_calls(inferno_answer_free, [](inferno_answer answer) {
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_INVALID_REQUEST);
  });
}

TEST(Callbacks, UnloadingEndsAnswersThatAreRead) {
  std::thread([] {}).join();  // with the first one the thread sanitizer starts its own
  const int threads = threads_now();
  const inferno_model model = load();
  const inferno_answer answer = ask(model, long_request);
  Heard heard;
  const inferno_answer called = ask_with(heard, model, long_request);
  std::atomic<bool> is_reading = false;
  std::thread reader([&] {
    auto part = sized<inferno_part>();
    Report report;
    while (inferno_answer_next(answer, -1, &part, &report) == INFERNO_OK) {
      is_reading.store(true);
      if (part.kind == INFERNO_PART_END) return;  // the context was full before the model was unloaded
    }
    EXPECT_EQ(report.what(), "the model was unloaded");
  });
  while (!is_reading.load()) std::this_thread::yield();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(heard.ends, 1);
  reader.join();
  EXPECT_EQ(threads_once(threads), threads);
  auto usage = sized<inferno_usage>();
  EXPECT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(called, nullptr), INFERNO_OK);
}

}  // namespace
}  // namespace inferno::library
