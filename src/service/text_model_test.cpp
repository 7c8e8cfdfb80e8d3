#include "service/text_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/thread_time.h"
#include "service/answer.h"
#include "support/caught_error.h"
#include "support/source_dir.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

const std::string llama = std::string(INFERNO_TEST_DATA) + "/models/llama";

const TextModel& model() {
  static const TextModel loaded({.name = "llama", .path = llama},
                                {.device = {.device = "cpu", .threads = 2}, .parallel = 4});
  return loaded;
}

// CPU time, so that a busy machine does not fail the test.
double thread_seconds() {
  return std::chrono::duration<double>(thread_time()).count();
}

TextRequest completing(const std::string& prompt) {
  TextRequest request;
  request.prompt = prompt;
  request.settings.temperature = 0.0f;
  request.settings.max_tokens = 4;
  request.settings.ignore_eos = true;
  return request;
}

Answer answer_to(const TextRequest& request) {
  return write_answer(
      model(), model().prepare(request), [] { return false; }, [](const ReplyPart&) { return true; });
}

TEST(TextModel, RefusesWhatIsNoModelBeforeItIsReadAsATokenizer) {
  const TemporaryDirectory folder;
  std::filesystem::copy(llama + "/tokenizer.json", folder.path() / "tokenizer.json");
  for (const std::filesystem::path& path :
       {folder.path(), folder.path() / "tokenizer.json", std::filesystem::path(llama) / "config.json",
        std::filesystem::path(INFERNO_SOURCE_DIR) / "README.md"}) {
    const Error error = caught_error(
        [&] { const TextModel loaded({.name = "wrong", .path = path}, {.device = {.device = "cpu"}}); });
    EXPECT_TRUE(std::string(error.what()).starts_with(path.string() + ": expected a model directory"))
        << error.what();
    EXPECT_NE(error.advice().next, "");
  }
}

TEST(TextModel, LoadsTheModelOfAFileOfItsWeights) {
  const TextModel loaded({.name = "llama", .path = llama + "/model-00002-of-00006.safetensors"},
                         {.device = {.device = "cpu"}});
  EXPECT_EQ(loaded.path(), llama);
}

TEST(TextModel, CompletesTokensAsItCompletesTheirText) {
  TextRequest request = completing("Hello");
  const Answer by_text = answer_to(request);
  request.prompt_tokens = model().prepare(request).generation.prompt;
  request.prompt.reset();
  EXPECT_EQ(answer_to(request).text, by_text.text);
  EXPECT_EQ(by_text.completion_tokens(), 4);
}

TEST(TextModel, TheLargestLogitIsTheTokenOfAGreedyAnswer) {
  const TextRequest request = completing("Hello");
  const std::vector<TokenId> prompt = model().prepare(request).generation.prompt;
  const std::vector<float> logits = model().logits(prompt, 1);
  const Answer answer = answer_to(request);
  EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), answer.tokens.front().token);
  const auto all = model().logits(prompt, static_cast<int>(prompt.size()));
  EXPECT_EQ(all.size(), prompt.size() * logits.size());
}

TEST(TextModel, RefusesLogitsOfTokensThatWereNotGiven) {
  EXPECT_THROW(model().logits({1, 2}, 3), Error);
  EXPECT_THROW(model().logits({}, 0), Error);
  EXPECT_THROW(model().logits({1 << 30}, 1), Error);
  EXPECT_THROW(model().logits(std::vector<TokenId>(1 << 20, 1), 1), PromptTooLong);
  EXPECT_TRUE(model().engine().healthy());
}

TEST(TextModel, PreparesAParserForEachChoiceAndPassesOnWhoAsks) {
  TextRequest request = completing("Hello");
  request.choices = 3;
  request.client = "a key";
  request.cache_scope = "a scope";
  const PreparedRequest prepared = model().prepare(request);
  EXPECT_EQ(prepared.generation.choices, 3);
  EXPECT_EQ(prepared.generation.client, "a key");
  EXPECT_EQ(prepared.generation.cache_scope, "a scope");
  EXPECT_TRUE(prepared.parsers.empty());  // plain text
}

TEST(TextModel, WarnsOfControlTokensThatAreReadAsText) {
  TextRequest request = completing("a<|endoftext|>b");
  ASSERT_EQ(model().prepare(request).warnings.size(), 1u);
  EXPECT_NE(model().prepare(request).warnings[0].find("<|endoftext|>"), std::string::npos);
  request.parse_special = true;
  EXPECT_TRUE(model().prepare(request).warnings.empty());
  EXPECT_TRUE(model().prepare(completing("a < b")).warnings.empty());
}

TEST(TextModel, EndsAnAnswerAtTheStopTokensOfTheRequest) {
  TextRequest request = completing("Hello");
  const Answer whole = answer_to(request);
  request.settings.stop_token_ids = {whole.tokens[1].token};
  const Answer cut = answer_to(request);
  EXPECT_EQ(cut.finish_reason, "stop");
  EXPECT_LE(cut.completion_tokens(), 2);
  EXPECT_TRUE(whole.text.starts_with(cut.text));
  request.settings.min_tokens = 3;
  EXPECT_GE(answer_to(request).completion_tokens(), 3);
  request.settings.stop_token_ids = {1 << 20};
  EXPECT_THROW(model().prepare(request), Error);
}

// Far less than reading all of a long prompt takes, with sanitizers too.
#ifdef __SANITIZE_ADDRESS__
constexpr double at_once_seconds = 1.5;
#else
constexpr double at_once_seconds = 0.2;
#endif

TEST(TextModel, RefusesAPromptBeyondTheContextAtOnce) {
  const int context = model().engine().context();
  for (const char* unit : {"Hello, world! ", "a", " ", "\n", "é", "日", "<|"}) {
    std::string text = unit;
    while (text.size() < 10'000'000) text += text;
    const TextRequest request = completing(text);
    const double start = thread_seconds();
    try {
      model().prepare(request);
      ADD_FAILURE() << "a prompt of ten megabytes was accepted";
    } catch (const PromptTooLong& error) {
      EXPECT_EQ(error.context(), context);
      EXPECT_EQ(error.prompt_tokens(), static_cast<std::size_t>(context));
      EXPECT_FALSE(error.is_exact());
    }
    EXPECT_LT(thread_seconds() - start, at_once_seconds) << unit;
  }
  try {
    std::string words;
    for (int i = 0; i < context; ++i) words += " x";
    model().prepare(completing(words));
    ADD_FAILURE() << "a prompt as long as the context was accepted";
  } catch (const PromptTooLong& error) {
    EXPECT_TRUE(error.is_exact());
    EXPECT_GE(error.prompt_tokens(), static_cast<std::size_t>(context));
  }
  TextRequest request = completing("x");
  request.prompt.reset();
  request.prompt_tokens = std::vector<TokenId>(static_cast<std::size_t>(context) + 5, 1);
  try {
    model().prepare(request);
    ADD_FAILURE() << "token ids beyond the context were accepted";
  } catch (const PromptTooLong& error) {
    EXPECT_EQ(error.prompt_tokens(), static_cast<std::size_t>(context) + 5);
    EXPECT_TRUE(error.is_exact());
  }
}

TEST(TextModel, RefusesAnEndTokenThatDoesNotExist) {
  const TemporaryDirectory folder;
  const auto load = [&] {
    TextModel({.name = "copy", .path = folder.path()}, {.device = {.device = "cpu", .threads = 1}});
  };
  std::filesystem::copy(llama, folder.path());
  folder.write("generation_config.json", R"({"eos_token_id": [2, 1]})");
  EXPECT_NO_THROW(load());
  folder.write("generation_config.json", R"({"eos_token_id": [2, 999999]})");
  const Error error = caught_error(load);
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_NE(std::string_view(error.what()).find("eos_token_id 999999 is beyond the vocabulary"),
            std::string_view::npos);
}

TEST(TextModel, TakesAnotherChatTemplate) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.write(
      "short.template",
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}"
      "{{ tone }}assistant:{% endif %}");
  const TextModel chatting({.name = "llama", .path = llama},
                           {.device = {.device = "cpu", .threads = 2}, .chat_template_file = file});
  EXPECT_FALSE(chatting.shows_tools());
  TextRequest request;
  request.messages = first_messages("", "Hello");
  request.template_variables = {{"tone", "kind "}};
  request.choices = 2;
  const PreparedRequest prepared = chatting.prepare(request);
  EXPECT_EQ(chatting.tokenizer().decode(prepared.generation.prompt), "user: Hello\nkind assistant:");
  EXPECT_EQ(prepared.parsers.size(), 2u);
  request.messages.push_back({{"role", "assistant"}, {"content", "I"}});
  request.continue_final_message = true;
  EXPECT_EQ(chatting.tokenizer().decode(chatting.prepare(request).generation.prompt),
            "user: Hello\nassistant: I");
  request.continue_final_message = false;
  for (const std::size_t bytes : {50'000u, 7'000'000u, 30'000'000u}) {
    request.messages = first_messages("", std::string(bytes, '.'));
    const double start = thread_seconds();
    try {
      chatting.prepare(request);
      ADD_FAILURE() << bytes;
    } catch (const PromptTooLong& error) {
      EXPECT_EQ(error.is_exact(), bytes < 100'000) << bytes;
    }
    EXPECT_LT(thread_seconds() - start, at_once_seconds) << bytes;
  }
}

TEST(TextModel, SharesPrefixesWithinAScopeOnly) {
  TextRequest request = completing(std::string(200, 'a') + " prefix of the scopes");
  request.cache_scope = "one";
  answer_to(request);
  EXPECT_GT(answer_to(request).finished.cached_tokens, 0);
  request.cache_scope = "two";
  EXPECT_EQ(answer_to(request).finished.cached_tokens, 0);
}

}  // namespace
}  // namespace inferno
