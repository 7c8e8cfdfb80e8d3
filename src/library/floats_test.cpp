// The floating-point environment of the caller: neither an answer nor the caller notices that of the other.
#include <fenv.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <functional>
#include <string>
#include <vector>

#include "library/library_scene.h"
#include "support/temporary_directory.h"

namespace inferno::library {
namespace {

// A thread's environment; the one from before afterwards.
class Floats {
 public:
  explicit Floats(const std::function<void()>& change) {
    fegetenv(&before_);
    change();
  }
  ~Floats() { fesetenv(&before_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

 private:
  fenv_t before_;
};

#if defined(__x86_64__)
void set_x87_control(unsigned short word) {
  asm volatile("fldcw %0" : : "m"(word));
}
#endif

struct Change {
  const char* name;
  std::function<void()> make;
};

// What programs do to their threads.
std::vector<Change> changes() {
  return {
      {"toward zero", [] { fesetround(FE_TOWARDZERO); }},
      {"upward", [] { fesetround(FE_UPWARD); }},
      {"traps", [] { feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT); }},
#if defined(__x86_64__)
      {"no subnormal numbers", [] { _mm_setcsr(_mm_getcsr() | 0x8040); }},
      {"a shorter long double", [] { set_x87_control(0x27f); }},
#endif
  };
}

// All of the environment that a program can set or read.
std::vector<unsigned> environment() {
  std::vector<unsigned> found = {static_cast<unsigned>(fegetround()), static_cast<unsigned>(fegetexcept()),
                                 static_cast<unsigned>(fetestexcept(FE_ALL_EXCEPT))};
#if defined(__x86_64__)
  fenv_t floats;
  fegetenv(&floats);
  found.insert(found.end(), {floats.__control_word, floats.__status_word, _mm_getcsr()});
#endif
  return found;
}

const std::string sampled_request =
    R"({"prompt": "Hello", "seed": 3, "max_tokens": 24, "logprobs": 2, "temperature": 1.3, "top_p": 0.9})";

// The answer as JSON, without its timings, which end it.
std::string json_of(inferno_answer answer) {
  std::vector<char> json(1 << 16);
  EXPECT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_json(answer, json.data(), json.size(), nullptr, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  const std::string text = json.data();
  EXPECT_NE(text.find("\"timings\""), std::string::npos);
  return text.substr(0, text.find("\"timings\""));
}

std::string answer_of(inferno_model model) {
  return json_of(ask(model, sampled_request));
}

std::vector<float> logits_of(inferno_model model) {
  const std::int32_t tokens[] = {1, 2, 3, 4};
  std::size_t count = 0;
  EXPECT_EQ(inferno_logits(model, tokens, 4, 4, nullptr, 0, &count, nullptr), INFERNO_OK);
  std::vector<float> logits(count);
  EXPECT_EQ(inferno_logits(model, tokens, 4, 4, logits.data(), count, nullptr, nullptr), INFERNO_OK);
  return logits;
}

TEST(Floats, AnswersDoNotDependOnTheEnvironmentOfTheCaller) {
  const inferno_model reference = load();
  const std::string answer = answer_of(reference);
  const std::vector<float> logits = logits_of(reference);
  EXPECT_EQ(inferno_model_unload(reference, nullptr), INFERNO_OK);
  for (const Change& change : changes()) {
    const Floats changed(change.make);
    const std::vector<unsigned> before = environment();
    const inferno_model model = load();  // its threads are started with that environment
    EXPECT_EQ(answer_of(model), answer) << change.name;
    EXPECT_TRUE(logits_of(model) == logits) << change.name;
    EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
    EXPECT_EQ(environment(), before) << change.name;
  }
}

TEST(Floats, ACallRaisesNoExceptionAndForgetsNone) {
  const inferno_model model = load();
  for (const int raised : {0, FE_DIVBYZERO, FE_INEXACT | FE_OVERFLOW}) {
    const Floats changed([raised] {
      feclearexcept(FE_ALL_EXCEPT);
      feraiseexcept(raised);
    });
    const std::vector<unsigned> before = environment();
    logits_of(model);
    EXPECT_EQ(
        inferno_request_free(request_of(R"({"prompt": "a", "temperature": 0.3, "top_p": 0.7})"), nullptr),
        INFERNO_OK);
    EXPECT_EQ(environment(), before) << raised;
  }
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Floats, TheSelfTestDoesNotDependOnTheEnvironmentOfTheCaller) {
  const TemporaryDirectory cache;
  const std::string folder = cache.path().string();
  inferno_load_options options = small_options();
  options.cache = folder.c_str();
  for (const Change& change : changes()) {
    const Floats changed(change.make);
    Report report;
    EXPECT_EQ(inferno_self_test(&options, nullptr, 0, nullptr, &report), INFERNO_OK)
        << change.name << ": " << report.text();
  }
}

std::int32_t change_in_callback(void* context, inferno_answer, const inferno_part*) {
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0) << "the engine's flags are not the callback's";
  EXPECT_EQ(fegetround(), FE_TONEAREST);
  static_cast<const Change*>(context)->make();
  return 0;
}

TEST(Floats, WhatACallbackChangesEndsWithIt) {
  const inferno_model model = load();
  const std::string answer = answer_of(model);
  const inferno_request request = request_of(R"({"prompt": "Hello", "max_tokens": 4})");
  for (Change& change : changes()) {
    inferno_answer called = {0};
    ASSERT_EQ(inferno_ask_with_callback(model, request, change_in_callback, &change, &called, nullptr),
              INFERNO_OK);
    ASSERT_EQ(inferno_answer_wait(called, -1, nullptr, nullptr), INFERNO_OK);
    EXPECT_EQ(inferno_answer_free(called, nullptr), INFERNO_OK);
    EXPECT_EQ(inferno_prefix_drop(model, nullptr), INFERNO_OK);
    EXPECT_EQ(answer_of(model), answer) << change.name;
  }
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

}  // namespace
}  // namespace inferno::library
