#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "chat/json.h"
#include "library/border.h"
#include "library/library_scene.h"
#include "support/temporary_directory.h"

namespace inferno::library {
namespace {

TEST(Library, KnowsItsVersionAndItsInterface) {
  EXPECT_EQ(inferno_abi(), INFERNO_ABI);
  EXPECT_EQ(std::string(inferno_version()).find("0."), 0u);
  EXPECT_STREQ(inferno_status_name(INFERNO_OVERLOADED), "overloaded");
  EXPECT_STREQ(inferno_status_name(INFERNO_TOO_SMALL), "too_small");
  EXPECT_STREQ(inferno_status_name(12), "unknown");
  EXPECT_STREQ(inferno_status_name(-1), "unknown");
}

TEST(Library, AnswersByPartsAndAsAWhole) {
  const inferno_model model = load();
  const inferno_answer answer = ask(model, short_request);
  const std::string parts = read_all(answer);
  EXPECT_EQ(parts, text_of(answer));
  EXPECT_FALSE(parts.empty());
  auto usage = sized<inferno_usage>();
  ASSERT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_OK);
  EXPECT_EQ(usage.finish, INFERNO_FINISH_LENGTH);
  EXPECT_EQ(usage.completion_tokens, 8);
  EXPECT_GT(usage.prompt_tokens, 0);
  EXPECT_GT(usage.total_seconds, 0);
  std::vector<char> json(4096);
  ASSERT_EQ(inferno_answer_json(answer, json.data(), json.size(), nullptr, nullptr), INFERNO_OK);
  const Json whole = parse_json(json.data(), "answer");
  EXPECT_EQ(whole.at("text"), parts);
  EXPECT_EQ(whole.at("completion_tokens"), 8);
  EXPECT_TRUE(whole.at("timings").contains("load_ms"));
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Library, AnswersToMessagesWithTheChatTemplate) {
  const inferno_model model = load(builtin_model, 1);
  inferno_request request = {0};
  ASSERT_EQ(inferno_request_new(&request, nullptr), INFERNO_OK);
  ASSERT_EQ(inferno_request_add_message(request, "user", "Tell me a story", nullptr), INFERNO_OK);
  ASSERT_EQ(inferno_request_set_integer(request, "max_tokens", 6, nullptr), INFERNO_OK);
  ASSERT_EQ(inferno_request_set_number(request, "temperature", 0.0, nullptr), INFERNO_OK);
  std::vector<char> prompt(4096);
  ASSERT_EQ(inferno_prompt_text(model, request, prompt.data(), prompt.size(), nullptr, nullptr), INFERNO_OK);
  EXPECT_NE(std::string(prompt.data()).find("Tell me a story"), std::string::npos);
  std::size_t count = 0;
  ASSERT_EQ(inferno_prompt_tokens(model, request, nullptr, 0, &count, nullptr), INFERNO_OK);
  EXPECT_GT(count, 3u);
  inferno_answer answer = {0};
  ASSERT_EQ(inferno_ask(model, request, &answer, nullptr), INFERNO_OK);
  EXPECT_NE(read_all(answer), "");
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, KeepsAnAnswerToItsConstraint) {
  const inferno_model model = load(builtin_model, 1);
  const inferno_answer answer =
      ask(model, R"({"prompt": "The colour is ", "choices": ["red", "green"], "seed": 1})");
  const std::string text = read_all(answer);
  EXPECT_TRUE(text == "red" || text == "green") << text;
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  // The grammar is compiled while the request waits, so its error is the answer's.
  const inferno_answer refused = ask(model, R"({"prompt": "a", "regex": "(a", "max_tokens": 2})");
  Report report;
  EXPECT_EQ(inferno_answer_wait(refused, -1, nullptr, &report), INFERNO_INVALID_REQUEST);
  EXPECT_NE(report.what().find("regex"), std::string::npos) << report.text();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(refused, nullptr), INFERNO_OK);
}

TEST(Library, CutsLongTextsBetweenCharacters) {
  const std::string text = "a€";  // 1 + 3 bytes
  char memory[8];
  EXPECT_EQ(copy_cut(memory, text), 4u);
  EXPECT_EQ(copy_cut(std::span(memory, 5), text), 4u);
  EXPECT_EQ(copy_cut(std::span(memory, 4), text), 1u);
  EXPECT_STREQ(memory, "a");
  EXPECT_EQ(copy_cut(std::span(memory, 1), text), 0u);
  EXPECT_STREQ(memory, "");
}

TEST(Library, LosesNoByteOfALongAnswer) {
  const inferno_model model = load(builtin_model, 1);
  std::string wanted;
  for (int i = 0; i < 20; ++i) wanted += "the cat and the dog ";
  const inferno_answer answer = ask(model, Json{{"prompt", "Once"}, {"choices", {wanted}}}.dump());
  EXPECT_EQ(read_all(answer), wanted);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, DescribesWhatItLoaded) {
  const inferno_model model = load(tiny_model, 3);
  auto found = sized<inferno_description>();
  ASSERT_EQ(inferno_model_describe(model, &found, nullptr), INFERNO_OK);
  EXPECT_STREQ(found.family, "llama");
  EXPECT_EQ(found.parallel, 3);
  EXPECT_GT(found.vocabulary, 0);
  EXPECT_GT(found.context, 0);
  EXPECT_GT(found.weight_bytes, 0u);
  EXPECT_GT(found.cache_bytes, 0u);
  EXPECT_GT(found.parameters, 0u);
  EXPECT_NE(found.device[0], '\0');
  EXPECT_GT(found.load_seconds, 0);
  auto statistics = sized<inferno_statistics>();
  const inferno_answer answer = ask(model, short_request);
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  ASSERT_EQ(inferno_model_statistics(model, &statistics, nullptr), INFERNO_OK);
  EXPECT_EQ(statistics.healthy, 1);
  EXPECT_EQ(statistics.requests, 1u);
  EXPECT_GE(statistics.generated_tokens, 7u);
  std::size_t length = 1;
  EXPECT_EQ(inferno_model_template(model, nullptr, 0, &length, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, PlansWhatLoadingThenNeeds) {
  const inferno_load_options options = small_options(2);
  auto plan = sized<inferno_plan_result>();
  Report report;
  ASSERT_EQ(inferno_plan(tiny_model.c_str(), &options, &plan, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(plan.fits, 1);
  EXPECT_EQ(plan.parallel, 2);
  EXPECT_EQ(plan.total_bytes, plan.weight_bytes + plan.cache_bytes + plan.workspace_bytes);
  const inferno_model model = load(tiny_model, 2);
  auto found = sized<inferno_description>();
  ASSERT_EQ(inferno_model_describe(model, &found, nullptr), INFERNO_OK);
  EXPECT_EQ(plan.weight_bytes, found.weight_bytes);
  EXPECT_EQ(plan.parameters, found.parameters);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

// What one sequence of a model needs with these options, and what it takes once it is loaded.
struct Needs {
  inferno_plan_result plan;
  inferno_description loaded;
};
Needs needs_of(const std::string& path, const char* cache_type, const char* quantize) {
  inferno_load_options options = small_options();
  options.cache_type = cache_type;
  options.quantize = quantize;
  Needs needs = {sized<inferno_plan_result>(), sized<inferno_description>()};
  Report report;
  inferno_model model = {0};
  EXPECT_EQ(inferno_plan(path.c_str(), &options, &needs.plan, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(inferno_model_load(path.c_str(), &options, &model, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(inferno_model_describe(model, &needs.loaded, nullptr), INFERNO_OK);
  EXPECT_FALSE(read_all(ask(model, short_request)).empty());
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  return needs;
}

TEST(Library, StoresTheCacheInTheTypeThatTheCallerChooses) {
  const std::uint64_t whole = needs_of(builtin_model, nullptr, nullptr).plan.cache_token_bytes;
  struct Choice {
    const char *asked, *named;
    double share;  // of the bytes of f32
  };
  for (const Choice& choice : {Choice{"auto", "f32", 1.0},
                               {"", "f32", 1.0},
                               {"f16", "f16", 0.5},
                               {"q8_0", "q8_0", 34.0 / 128},
                               {"fp8", "fp8", 0.25},
                               {"q8_0,f16", "q8_0,f16", 49.0 / 128}}) {
    const Needs needs = needs_of(builtin_model, choice.asked, nullptr);
    EXPECT_STREQ(needs.plan.cache_type, choice.named);
    EXPECT_STREQ(needs.loaded.cache_type, choice.named);
    EXPECT_EQ(static_cast<double>(needs.plan.cache_token_bytes), choice.share * static_cast<double>(whole));
    EXPECT_EQ(needs.loaded.cache_token_bytes, needs.plan.cache_token_bytes);
    EXPECT_EQ(needs.loaded.cache_bytes, needs.plan.cache_bytes);
  }
}

TEST(Library, RoundsWeightsAsTheCallerAsks) {
  const Needs whole = needs_of(tiny_model, nullptr, nullptr), rounded = needs_of(tiny_model, nullptr, "q8_0");
  EXPECT_LT(rounded.plan.weight_bytes, whole.plan.weight_bytes);
  EXPECT_EQ(rounded.plan.weight_bytes, rounded.loaded.weight_bytes);
  EXPECT_EQ(rounded.loaded.parameters, whole.loaded.parameters);
}

TEST(Library, RefusesTypesThatItDoesNotKnow) {
  const auto refused = [](const std::string& path, const char* cache_type, const char* quantize) {
    inferno_load_options options = small_options();
    options.cache_type = cache_type;
    options.quantize = quantize;
    auto plan = sized<inferno_plan_result>();
    inferno_model model = {0};
    Report of_plan, of_load;
    const inferno_status status = inferno_plan(path.c_str(), &options, &plan, &of_plan);
    EXPECT_EQ(inferno_model_load(path.c_str(), &options, &model, &of_load), status);
    EXPECT_EQ(of_plan.text(), of_load.text());
    EXPECT_EQ(model.id, 0u);
    return std::pair(status, of_load.text());
  };
  EXPECT_EQ(refused(tiny_model, "q5_1", nullptr).first, INFERNO_INVALID_REQUEST);
  EXPECT_EQ(refused(tiny_model, "q8_0,f16,f16", nullptr).first, INFERNO_INVALID_REQUEST);
  EXPECT_NE(refused(tiny_model, "q5_1", nullptr).second.find("inferno_load_options.cache_type \"q5_1\""),
            std::string::npos);
  EXPECT_EQ(refused(tiny_model, nullptr, "q3_k").first, INFERNO_INVALID_REQUEST);
  EXPECT_NE(refused(tiny_model, nullptr, "q3_k").second.find("inferno_load_options.quantize \"q3_k\""),
            std::string::npos);
  const auto [status, text] = refused(tiny_model, "q8_0", nullptr);  // heads of 16
  EXPECT_EQ(status, INFERNO_UNSUPPORTED);
  EXPECT_NE(text.find("blocks have 32 elements"), std::string::npos) << text;
}

TEST(Library, RefusesAPathThatIsNoModel) {
  const inferno_load_options options = small_options();
  inferno_model model = {0};
  Report report;
  EXPECT_EQ(inferno_model_load((tiny_model + "/config.json").c_str(), &options, &model, &report),
            INFERNO_UNSUPPORTED);
  EXPECT_NE(report.what().find("config.json: expected a model directory"), std::string::npos)
      << report.text();
  EXPECT_EQ(model.id, 0u);
}

TEST(Library, LoadsGgufFilesAndNamesInACacheOfTheHub) {
  namespace fs = std::filesystem;
  const TemporaryDirectory cache;
  const fs::path repository = cache.path() / "models--org--tiny";
  const std::string revision(40, 'a');
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "snapshots");
  std::ofstream(repository / "refs/main") << revision;
  fs::copy(tiny_model, repository / "snapshots" / revision, fs::copy_options::recursive);
  inferno_load_options options = small_options();
  const std::string folder = cache.path().string();
  options.hub_cache = folder.c_str();
  const std::string gguf = std::string(INFERNO_TEST_DATA) + "/gguf/llama-Q4_K_M.gguf";
  for (const std::string& name :
       {std::string("org/tiny"), gguf, tiny_model + "/model-00002-of-00006.safetensors"}) {
    inferno_model model = {0};
    Report report;
    ASSERT_EQ(inferno_model_load(name.c_str(), &options, &model, &report), INFERNO_OK) << report.text();
    auto found = sized<inferno_description>();
    EXPECT_EQ(inferno_model_describe(model, &found, nullptr), INFERNO_OK);
    EXPECT_STREQ(found.family, "llama");
    EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  }
}

TEST(Library, HoldsTheLimitsOfItsOptions) {
  inferno_load_options options = small_options();
  options.cache_bytes = 1 << 20;
  options.max_step_tokens = 16;
  inferno_model model = {0};
  ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, nullptr), INFERNO_OK);
  auto description = sized<inferno_description>();
  ASSERT_EQ(inferno_model_describe(model, &description, nullptr), INFERNO_OK);
  auto statistics = sized<inferno_statistics>();
  ASSERT_EQ(inferno_model_statistics(model, &statistics, nullptr), INFERNO_OK);
  const std::uint64_t bytes = static_cast<std::uint64_t>(statistics.blocks) *
                              static_cast<std::uint64_t>(statistics.block_tokens) *
                              description.cache_token_bytes;
  EXPECT_GT(bytes, 0u);
  EXPECT_LE(bytes, options.cache_bytes);
  // 60 tokens of a prompt take at least four steps of 16.
  std::string tokens = "5";
  for (int i = 1; i < 60; ++i) tokens += ", 5";
  const inferno_answer answer =
      ask(model, R"({"temperature": 0, "max_tokens": 1, "prompt": [)" + tokens + "]}");
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  // The engine counts a step after it has published its tokens.
  for (int i = 0; i < 1000 && statistics.steps < 4; ++i) {
    ASSERT_EQ(inferno_model_statistics(model, &statistics, nullptr), INFERNO_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(statistics.steps, 4u);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  options.chat_template_file = "/nowhere/template.jinja";
  Report report;
  EXPECT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, &report), INFERNO_NOT_FOUND)
      << report.text();
}

TEST(Library, FindsModelsInTheFoldersThatTheCallerNames) {
  const TemporaryDirectory home;
  inferno_load_options options = small_options();
  const std::string folders = std::string(INFERNO_TEST_DATA) + "/models", cache = home.path().string();
  options.model_folders = folders.c_str();
  options.cache = cache.c_str();
  std::vector<char> json(1 << 16);
  ASSERT_EQ(inferno_list_models(&options, json.data(), json.size(), nullptr, nullptr), INFERNO_OK);
  const Json all = parse_json(json.data(), "models");
  EXPECT_TRUE(std::ranges::any_of(all, [](const Json& model) { return model.at("name") == "llama"; }));
  EXPECT_EQ(all.back().at("name"), "builtin");
  inferno_model model = {0};
  Report report;
  ASSERT_EQ(inferno_model_load("llama", &options, &model, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  // The built-in model is unpacked into the cache that the caller names.
  ASSERT_EQ(inferno_model_load("builtin", &options, &model, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_TRUE(std::filesystem::exists(home.path() / "inferno"));
  std::vector<char> text(512);
  ASSERT_EQ(inferno_self_test(&options, text.data(), text.size(), nullptr, &report), INFERNO_OK)
      << report.text();
  EXPECT_NE(std::string(text.data()).find("match the reference"), std::string::npos);
}

struct Watched {
  int calls = 0, cancel_at = -1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> progress = {};
  std::vector<std::string> messages = {};
};

std::int32_t watch(void* context, std::uint64_t done, std::uint64_t total) {
  auto& watched = *static_cast<Watched*>(context);
  watched.progress.emplace_back(done, total);
  return watched.calls++ == watched.cancel_at ? 1 : 0;
}

void note(void* context, inferno_log_level, const char* message) {
  static_cast<Watched*>(context)->messages.emplace_back(message);
}

TEST(Library, ReportsProgressAndMessages) {
  Watched watched;
  inferno_load_options options = small_options();
  options.progress = watch;
  options.progress_context = &watched;
  options.log = note;
  options.log_context = &watched;
  inferno_model model = {0};
  ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, nullptr), INFERNO_OK);
  ASSERT_GE(watched.progress.size(), 2u);
  EXPECT_EQ(watched.progress.front(), (std::pair<std::uint64_t, std::uint64_t>(0, 0)));
  EXPECT_EQ(watched.progress.back().first, watched.progress.back().second);
  EXPECT_GT(watched.progress.back().second, 0u);
  ASSERT_FALSE(watched.messages.empty());
  EXPECT_EQ(watched.messages.front().find("device: "), 0u);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

// What a callback was told when it called the library.
struct Meddling {
  inferno_model model = {0};
  std::vector<inferno_status> answers = {};
  std::string what = {};
};

void meddle(void* context, inferno_log_level, const char*) {
  auto& meddling = *static_cast<Meddling*>(context);
  Report report;
  meddling.answers.push_back(inferno_model_unload(meddling.model, &report));
  meddling.what = report.what();
}

std::int32_t meddle_with_progress(void* context, std::uint64_t, std::uint64_t) {
  meddle(context, INFERNO_LOG_WARNING, "");
  return 0;
}

TEST(Library, RefusesCallsInCallbacksForProgressAndLog) {
  Meddling meddling;
  inferno_load_options options = small_options();
  options.progress = meddle_with_progress;
  options.progress_context = &meddling;
  options.log = meddle;
  options.log_context = &meddling;
  ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &meddling.model, nullptr), INFERNO_OK);
  const std::size_t while_loading = meddling.answers.size();
  EXPECT_GE(while_loading, 3u);  // twice progress, and the device
  // A warning about a setting without effect comes while the model is in use: unloading would wait for ever.
  const inferno_answer answer = ask(meddling.model, R"({"prompt": "a", "max_tokens": 1, "think": true})");
  EXPECT_GT(meddling.answers.size(), while_loading);
  for (const inferno_status status : meddling.answers) EXPECT_EQ(status, INFERNO_INVALID_REQUEST);
  EXPECT_EQ(meddling.what, "the library was called in a progress or log callback");
  EXPECT_EQ(inferno_model_unload(meddling.model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, CancelsLoading) {
  for (const int call : {0, 1}) {
    Watched watched = {.cancel_at = call};
    inferno_load_options options = small_options();
    options.progress = watch;
    options.progress_context = &watched;
    inferno_model model = {7};
    Report report;
    EXPECT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, &report), INFERNO_CANCELLED);
    EXPECT_EQ(report.status(), INFERNO_CANCELLED);
    EXPECT_EQ(model.id, 0u);
  }
}

TEST(Library, PollsAndTimesOut) {
  const inferno_model model = load();
  const inferno_answer answer = ask(model, short_request);
  auto part = sized<inferno_part>();
  std::string text;
  int polls = 0;
  do {
    ASSERT_EQ(inferno_answer_next(answer, polls % 2, &part, nullptr), INFERNO_OK);
    if (part.kind == INFERNO_PART_CONTENT) text.append(part.text, part.length);
    ++polls;
  } while (part.kind != INFERNO_PART_END);
  EXPECT_EQ(text, text_of(answer));
  // The end stays the end.
  ASSERT_EQ(inferno_answer_next(answer, -1, &part, nullptr), INFERNO_OK);
  EXPECT_EQ(part.kind, INFERNO_PART_END);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, CancelsFromAnotherThread) {
  const inferno_model model = load();
  const inferno_answer answer = ask(model, long_request);
  auto part = sized<inferno_part>();
  ASSERT_EQ(inferno_answer_next(answer, -1, &part, nullptr), INFERNO_OK);
  const auto steps = [&] {
    auto statistics = sized<inferno_statistics>();
    EXPECT_EQ(inferno_model_statistics(model, &statistics, nullptr), INFERNO_OK);
    return statistics.steps;
  };
  std::uint64_t steps_before = 0;
  std::thread([&] {
    EXPECT_EQ(inferno_answer_cancel(answer, nullptr), INFERNO_OK);
    steps_before = steps();
  }).join();
  std::int32_t is_over = 0;
  ASSERT_EQ(inferno_answer_wait(answer, -1, &is_over, nullptr), INFERNO_OK);
  EXPECT_EQ(is_over, 1);
  // The step that was being computed and the one that was queued ahead; both counts may be late by a step.
  EXPECT_LE(steps(), steps_before + 4);
  auto usage = sized<inferno_usage>();
  ASSERT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_OK);
  EXPECT_EQ(usage.finish, INFERNO_FINISH_CANCELLED);
  EXPECT_EQ(inferno_answer_cancel(answer, nullptr), INFERNO_OK);  // too late: no effect
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Library, KeepsAndDropsPrefixes) {
  const inferno_model model = load();
  std::string tokens = "5";
  for (int i = 0; i < 70; ++i) tokens += ", " + std::to_string(5 + i);
  const std::string json = R"({"temperature": 0, "max_tokens": 2, "prompt": [)" + tokens + "]}";
  const inferno_request request = request_of(json);
  const auto cached = [&] {
    const inferno_answer answer = ask(model, json);
    read_all(answer);
    auto usage = sized<inferno_usage>();
    EXPECT_EQ(inferno_answer_usage(answer, &usage, nullptr), INFERNO_OK);
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
    return usage.cached_tokens;
  };
  // What would constrain an answer to the prompt, even wrongly, does not matter to its prefix.
  EXPECT_EQ(inferno_request_set_text(request, "regex", "(", nullptr), INFERNO_OK);
  Report report;
  EXPECT_EQ(inferno_prefix_keep(model, request, &report), INFERNO_OK) << report.text();
  EXPECT_GE(cached(), 64);
  EXPECT_EQ(inferno_prefix_drop(model, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(cached(), 0);
  EXPECT_GE(cached(), 64);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

TEST(Library, ManyThreadsAskReadCancelAndUnload) {
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const inferno_answer shared = ask(model, long_request);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      auto part = sized<inferno_part>();
      auto statistics = sized<inferno_statistics>();
      for (int round = 0; round < 20; ++round) {
        inferno_answer answer = {0};
        if (inferno_ask(model, request, &answer, nullptr) != INFERNO_OK) return;  // unloaded
        inferno_answer_next(shared, 1, &part, nullptr);
        inferno_model_statistics(model, &statistics, nullptr);
        if ((round + i) % 3 == 0) inferno_answer_cancel(answer, nullptr);
        inferno_answer_wait(answer, -1, nullptr, nullptr);
        EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
        if (i == 3 && round == 10) {
          EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_INVALID_REQUEST);
  EXPECT_EQ(inferno_answer_free(shared, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
}

TEST(Library, TwoModelsSideBySide) {
  const inferno_model one = load(tiny_model, 1), other = load(builtin_model, 1);
  const inferno_answer first = ask(one, short_request), second = ask(other, short_request);
  EXPECT_NE(read_all(first), read_all(second));
  EXPECT_EQ(inferno_model_unload(one, nullptr), INFERNO_OK);
  const inferno_answer third = ask(other, short_request);
  EXPECT_EQ(read_all(third), text_of(second));
  EXPECT_EQ(inferno_model_unload(other, nullptr), INFERNO_OK);
  for (const inferno_answer answer : {first, second, third}) {
    EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  }
}

TEST(Library, TokensThereAndBack) {
  const inferno_model model = load(builtin_model, 1);
  std::size_t count = 0, length = 0;
  ASSERT_EQ(inferno_tokenize(model, "Once upon a time", 0, nullptr, 0, &count, nullptr), INFERNO_OK);
  std::vector<std::int32_t> tokens(count);
  ASSERT_EQ(inferno_tokenize(model, "Once upon a time", 0, tokens.data(), count, &count, nullptr),
            INFERNO_OK);
  std::vector<char> text(64);
  ASSERT_EQ(inferno_detokenize(model, tokens.data(), count, INFERNO_SKIP_SPECIAL, text.data(), text.size(),
                               &length, nullptr),
            INFERNO_OK);
  EXPECT_STREQ(text.data(), "Once upon a time");
  auto found = sized<inferno_description>();
  ASSERT_EQ(inferno_model_describe(model, &found, nullptr), INFERNO_OK);
  std::vector<float> logits(static_cast<std::size_t>(found.vocabulary));
  ASSERT_EQ(inferno_logits(model, tokens.data(), count, 1, logits.data(), logits.size(), &length, nullptr),
            INFERNO_OK);
  EXPECT_EQ(length, logits.size());
  // The likeliest token is the first of a greedy answer.
  const auto best = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  Json fields = {{"prompt", tokens}, {"temperature", 0}, {"max_tokens", 1}, {"logprobs", 0}};
  const inferno_answer answer = ask(model, fields.dump());
  ASSERT_EQ(inferno_answer_wait(answer, -1, nullptr, nullptr), INFERNO_OK);
  std::vector<char> json(4096);
  ASSERT_EQ(inferno_answer_json(answer, json.data(), json.size(), nullptr, nullptr), INFERNO_OK);
  EXPECT_EQ(parse_json(json.data(), "answer").at("logprobs").at("content").at(0).at("id"), best);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
}

TEST(Library, AnOverloadedModelSaysSo) {
  inferno_load_options options = small_options();
  options.max_waiting = 1;
  inferno_model model = {0};
  ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, nullptr), INFERNO_OK);
  const inferno_request request = request_of(long_request);
  std::vector<inferno_answer> answers;
  inferno_status status = INFERNO_OK;
  Report report;
  while (status == INFERNO_OK && answers.size() < 64) {
    status = inferno_ask(model, request, &answers.emplace_back(), &report);
  }
  EXPECT_EQ(status, INFERNO_OVERLOADED) << report.text();
  EXPECT_EQ(answers.back().id, 0u);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  answers.pop_back();
  for (const inferno_answer answer : answers) EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
}

}  // namespace
}  // namespace inferno::library
