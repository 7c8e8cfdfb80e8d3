// Every function of inferno.h called wrongly: an error that says so, never a crash.
#include <string_view>

#include "library/misuse_scene.h"
#include "support/temporary_directory.h"

namespace inferno::library {
namespace {

Handles freed() {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const inferno_answer answer = ask(model, short_request);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  return {model, request, answer};
}

std::vector<Handles> all_stale() {
  return {{{0}, {0}, {0}},              // none
          {{~0ull}, {~0ull}, {~0ull}},  // numbers that were never given
          {{6}, {5}, {4}},              // of other kinds
          freed()};
}

TEST(Misuse, HandlesThatMeanNothingAreErrors) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  for (const Handles& handles : all_stale()) {
    for (const auto& [name, call] : calls_with(handles, model, request)) {
      Report report;
      EXPECT_EQ(call(&report), INFERNO_INVALID_REQUEST) << name << ", model " << handles.model.id;
      EXPECT_NE(report.what(), "") << name;
      EXPECT_EQ(call(nullptr), INFERNO_INVALID_REQUEST) << name;
    }
  }
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

// What needs no model.
bool works_without_model(std::string_view name) {
  return name == "copy" || name == "request_json" || name == "add_message" || name.starts_with("set_") ||
         name == "cancel" || name.starts_with("free ");
}

TEST(Misuse, AfterUnloadingEveryFunctionIsAnErrorOrNeedsNoModel) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const Handles handles = {model, request, ask(model, short_request)};
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  for (const auto& [name, call] : calls_with(handles, model, request)) {
    if (std::string_view(name).starts_with("free ")) continue;
    EXPECT_EQ(call(nullptr), works_without_model(name) ? INFERNO_OK : INFERNO_INVALID_REQUEST) << name;
    if (std::string_view(name) == "copy") {
      EXPECT_EQ(inferno_request_free(written.copy, nullptr), INFERNO_OK);
    }
  }
  EXPECT_EQ(inferno_answer_free(handles.answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
}

void expect_invalid(const Calls& calls) {
  for (const auto& [name, call] : calls) {
    Report report;
    EXPECT_EQ(call(&report), INFERNO_INVALID_REQUEST) << name;
    EXPECT_NE(report.what(), "") << name;
  }
}

TEST(Misuse, NullIsAnError) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const inferno_answer answer = ask(model, short_request);
  inferno_model made = {0};
  inferno_request new_request = {0};
  inferno_answer new_answer = {0};
  auto plan = sized<inferno_plan_result>();
  const auto hear = [](void*, inferno_answer, const inferno_part*) -> std::int32_t { return 0; };
  const Calls calls = {
      {"load 1", [&](auto* e) { return inferno_model_load(nullptr, nullptr, &made, e); }},
      {"load 2", [&](auto* e) { return inferno_model_load(tiny_model.c_str(), nullptr, nullptr, e); }},
      {"describe", [&](auto* e) { return inferno_model_describe(model, nullptr, e); }},
      {"template", [&](auto* e) { return inferno_model_template(model, nullptr, 9, nullptr, e); }},
      {"statistics", [&](auto* e) { return inferno_model_statistics(model, nullptr, e); }},
      {"plan 1", [&](auto* e) { return inferno_plan(nullptr, nullptr, &plan, e); }},
      {"plan 2", [&](auto* e) { return inferno_plan(tiny_model.c_str(), nullptr, nullptr, e); }},
      {"list", [&](auto* e) { return inferno_list_models(nullptr, nullptr, 9, nullptr, e); }},
      {"self_test", [&](auto* e) { return inferno_self_test(nullptr, nullptr, 9, nullptr, e); }},
      {"new", [&](auto* e) { return inferno_request_new(nullptr, e); }},
      {"from_json 1", [&](auto* e) { return inferno_request_from_json(nullptr, &new_request, e); }},
      {"from_json 2", [&](auto* e) { return inferno_request_from_json("{}", nullptr, e); }},
      {"copy", [&](auto* e) { return inferno_request_copy(request, nullptr, e); }},
      {"set_text 1", [&](auto* e) { return inferno_request_set_text(request, nullptr, "a", e); }},
      {"set_text 2", [&](auto* e) { return inferno_request_set_text(request, "prompt", nullptr, e); }},
      {"set_number", [&](auto* e) { return inferno_request_set_number(request, nullptr, 1, e); }},
      {"set_integer", [&](auto* e) { return inferno_request_set_integer(request, nullptr, 1, e); }},
      {"set_json 1", [&](auto* e) { return inferno_request_set_json(request, nullptr, "1", e); }},
      {"set_json 2", [&](auto* e) { return inferno_request_set_json(request, "seed", nullptr, e); }},
      {"add_message 1", [&](auto* e) { return inferno_request_add_message(request, nullptr, "a", e); }},
      {"add_message 2", [&](auto* e) { return inferno_request_add_message(request, "user", nullptr, e); }},
      {"request_json", [&](auto* e) { return inferno_request_json(request, nullptr, 9, nullptr, e); }},
      {"ask", [&](auto* e) { return inferno_ask(model, request, nullptr, e); }},
      {"ask_with 1",
       [&](auto* e) { return inferno_ask_with_callback(model, request, nullptr, nullptr, &new_answer, e); }},
      {"ask_with 2",
       [&](auto* e) { return inferno_ask_with_callback(model, request, hear, nullptr, nullptr, e); }},
      {"next", [&](auto* e) { return inferno_answer_next(answer, -1, nullptr, e); }},
      {"usage", [&](auto* e) { return inferno_answer_usage(answer, nullptr, e); }},
      {"tool_calls", [&](auto* e) { return inferno_answer_tool_calls(answer, nullptr, 9, nullptr, e); }},
      {"answer_json", [&](auto* e) { return inferno_answer_json(answer, nullptr, 9, nullptr, e); }},
      {"text",
       [&](auto* e) { return inferno_answer_text(answer, INFERNO_PART_CONTENT, nullptr, 9, nullptr, e); }},
  };
  expect_invalid(calls);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Misuse, NullTextOrTokensAreAnError) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const Calls calls = {
      {"tokenize 1", [&](auto* e) { return inferno_tokenize(model, nullptr, 0, nullptr, 0, nullptr, e); }},
      {"tokenize 2", [&](auto* e) { return inferno_tokenize(model, "a", 0, nullptr, 9, nullptr, e); }},
      {"detokenize 1",
       [&](auto* e) { return inferno_detokenize(model, nullptr, 3, 0, nullptr, 0, nullptr, e); }},
      {"detokenize 2",
       [&](auto* e) { return inferno_detokenize(model, written.tokens, 1, 0, nullptr, 9, nullptr, e); }},
      {"prompt_text", [&](auto* e) { return inferno_prompt_text(model, request, nullptr, 9, nullptr, e); }},
      {"prompt_tokens",
       [&](auto* e) { return inferno_prompt_tokens(model, request, nullptr, 9, nullptr, e); }},
      {"logits 1", [&](auto* e) { return inferno_logits(model, nullptr, 3, 1, nullptr, 0, nullptr, e); }},
      {"logits 2",
       [&](auto* e) { return inferno_logits(model, written.tokens, 1, 1, nullptr, 1 << 20, nullptr, e); }},
  };
  expect_invalid(calls);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
}

// What a call made of a handle that had a value.
inferno_request made_in_log = {7};

void make_request_in_log(void*, inferno_log_level, const char*) {
  EXPECT_EQ(inferno_request_new(&made_in_log, nullptr), INFERNO_INVALID_REQUEST);
}

TEST(Misuse, AFunctionThatFailsMakesNoHandle) {
  inferno_load_options options = small_options();
  options.log = make_request_in_log;
  inferno_model model = {0};
  ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, nullptr), INFERNO_OK);
  EXPECT_EQ(made_in_log.id, 0u);
  const inferno_request request = request_of(short_request);
  const auto hear = [](void*, inferno_answer, const inferno_part*) -> std::int32_t { return 0; };
  inferno_model new_model;
  inferno_request made;
  inferno_answer answer;
  const Calls calls = {
      {"load", [&](auto* e) { return inferno_model_load("nothing", nullptr, &new_model, e); }},
      {"new", [&](auto* e) { return inferno_request_new(&made, e); }},
      {"from_json", [&](auto* e) { return inferno_request_from_json("[", &made, e); }},
      {"copy", [&](auto* e) { return inferno_request_copy({0}, &made, e); }},
      {"ask", [&](auto* e) { return inferno_ask(model, {0}, &answer, e); }},
      {"ask_with", [&](auto* e) { return inferno_ask_with_callback(model, {0}, hear, nullptr, &answer, e); }},
      {"ask_with, no callback",
       [&](auto* e) { return inferno_ask_with_callback(model, request, nullptr, nullptr, &answer, e); }},
  };
  for (const auto& [name, call] : calls) {
    inferno_error unsized = {};  // for which every call fails
    for (inferno_error* error : {&unsized, static_cast<inferno_error*>(nullptr)}) {
      if (error == nullptr && std::string_view(name) == "new") continue;
      new_model = {7}, made = {7}, answer = {7};
      EXPECT_NE(call(error), INFERNO_OK) << name;
      EXPECT_EQ(new_model.id * made.id * answer.id, 0u) << name;
    }
  }
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Misuse, MemoryThatIsTooSmallIsLeftAlone) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  std::size_t length = 0;
  ASSERT_EQ(inferno_request_json(request, nullptr, 0, &length, nullptr), INFERNO_OK);
  std::vector<char> memory(length + 1, '#');
  Report report;
  EXPECT_EQ(inferno_request_json(request, memory.data(), length, &length, &report), INFERNO_TOO_SMALL);
  EXPECT_EQ(memory.front(), '#');
  EXPECT_EQ(length + 1, memory.size());
  EXPECT_NE(report.text().find("capacity 0"), std::string::npos);
  EXPECT_EQ(inferno_request_json(request, memory.data(), memory.size(), nullptr, nullptr), INFERNO_OK);
  std::int32_t token = 7;
  std::size_t count = 0;
  EXPECT_EQ(inferno_tokenize(model, "Hello world", 0, &token, 1, &count, nullptr), INFERNO_TOO_SMALL);
  EXPECT_EQ(token, 7);
  EXPECT_GT(count, 1u);
  float logit = 7;
  EXPECT_EQ(inferno_logits(model, &token, 1, 1, &logit, 1, &count, nullptr), INFERNO_TOO_SMALL);
  EXPECT_EQ(logit, 7);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
}

std::string problem_with(const std::function<inferno_status(inferno_error*)>& call) {
  Report report;
  EXPECT_NE(call(&report), INFERNO_OK);
  return report.what();
}

TEST(Misuse, WrongValuesAreNamed) {
  const inferno_request request = request_of(short_request);
  EXPECT_EQ(problem_with([&](auto* e) { return inferno_request_set_text(request, "promt", "a", e); }),
            "\"promt\" is not a field of a request");
  EXPECT_NE(problem_with([&](auto* e) {
              return inferno_request_set_number(request, "temperature", -1, e);
            }).find("temperature"),
            std::string::npos);
  EXPECT_NE(problem_with([&](auto* e) { return inferno_request_set_number(request, "top_p", 1.0 / 0.0, e); }),
            "");
  EXPECT_NE(problem_with([&](auto* e) { return inferno_request_set_json(request, "stop", "[1", e); }), "");
  EXPECT_NE(problem_with([&](auto* e) {
              return inferno_request_set_text(request, "prompt", "\xff", e);
            }).find("not UTF-8"),
            std::string::npos);
  inferno_request made = {0};
  EXPECT_NE(problem_with([&](auto* e) { return inferno_request_from_json("[]", &made, e); }), "");
  // Fields that were refused change nothing.
  std::vector<char> json(512);
  ASSERT_EQ(inferno_request_json(request, json.data(), json.size(), nullptr, nullptr), INFERNO_OK);
  EXPECT_EQ(std::string(json.data()).find("promt"), std::string::npos);
  EXPECT_NE(std::string(json.data()).find("\"temperature\":0"), std::string::npos);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);

  inferno_load_options options = small_options();
  inferno_model model = {0};
  options.parallel = -1;
  EXPECT_EQ(problem_with([&](auto* e) { return inferno_model_load("builtin", &options, &model, e); }),
            "inferno_load_options.parallel: expected 0 to 1024, found -1");
  options = small_options();
  options.device = "abacus";
  EXPECT_NE(problem_with([&](auto* e) {
              return inferno_model_load(tiny_model.c_str(), &options, &model, e);
            }).find("abacus"),
            std::string::npos);
  EXPECT_NE(problem_with([&](auto* e) { return inferno_model_load("", nullptr, &model, e); }), "");
}

std::int32_t refuse_progress(void*, std::uint64_t, std::uint64_t) {
  ADD_FAILURE() << "a call that loads no model of the caller reports its progress";
  return 1;
}

void refuse_messages(void*, inferno_log_level, const char* message) {
  ADD_FAILURE() << "a call that loads no model of the caller logs: " << message;
}

TEST(Misuse, OptionsWithoutEffectAreChecked) {
  const TemporaryDirectory cache;
  const std::string folder = cache.path().string();
  inferno_load_options options = small_options();
  options.cache = folder.c_str();
  options.cache_type = "f16";
  options.quantize = "q4_0";
  options.progress = refuse_progress;
  options.log = refuse_messages;
  auto plan = sized<inferno_plan_result>();
  const Calls calls = {
      {"plan", [&](auto* e) { return inferno_plan(tiny_model.c_str(), &options, &plan, e); }},
      {"self_test", [&](auto* e) { return inferno_self_test(&options, nullptr, 0, nullptr, e); }},
      {"list_models", [&](auto* e) { return inferno_list_models(&options, nullptr, 0, nullptr, e); }},
  };
  for (const auto& [name, call] : calls) {
    Report report;
    EXPECT_EQ(call(&report), INFERNO_OK) << name << ": " << report.text();
  }
  options.max_waiting = -1;
  expect_invalid(calls);
}

TEST(Misuse, RequestsThatCannotBeAskedAreErrors) {
  const inferno_model model = load();
  for (const char* json : {"{}", R"({"prompt": "a", "messages": [{"role": "user", "content": "b"}]})",
                           R"({"prompt": [99999999]})", R"({"prompt": "a", "stop_token_ids": [99999999]})"}) {
    const inferno_request request = request_of(json);
    inferno_answer answer = {0};
    EXPECT_EQ(inferno_ask(model, request, &answer, nullptr), INFERNO_INVALID_REQUEST) << json;
    EXPECT_EQ(answer.id, 0u);
    EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  }
  std::int32_t tokens[2] = {1, 99999999};
  EXPECT_EQ(inferno_detokenize(model, tokens, 2, 0, nullptr, 0, nullptr, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_tokenize(model, "a", 64, nullptr, 0, nullptr, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_detokenize(model, tokens, ~std::size_t{0}, 0, nullptr, 0, nullptr, nullptr),
            INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_logits(model, tokens, 2, 3, nullptr, 0, nullptr, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_logits(model, tokens, 0, 0, nullptr, 0, nullptr, nullptr), INFERNO_INVALID_REQUEST);
  std::vector<float> logits(1 << 20);
  EXPECT_EQ(inferno_logits(model, tokens, 2, 1, logits.data(), logits.size(), nullptr, nullptr),
            INFERNO_INVALID_REQUEST);
  const inferno_answer answer = ask(model, short_request);
  EXPECT_EQ(inferno_answer_text(answer, INFERNO_PART_END, nullptr, 0, nullptr, nullptr),
            INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

}  // namespace
}  // namespace inferno::library
