#include "server/openai/chat_writer.h"

#include <gtest/gtest.h>

#include <deque>

#include "server/exchange_scene.h"
#include "support/source_dir.h"

namespace inferno::server {
namespace {

using Parts = std::vector<ReplyPart>;

// Returns the next parts of a script for each token.
class ScriptedParser : public ReplyParser {
 public:
  explicit ScriptedParser(std::deque<Parts> script) : script_(std::move(script)) {}
  Parts push(TokenId) override {
    Parts parts = std::move(script_.front());
    script_.pop_front();
    return parts;
  }
  Parts finish() override { return {}; }
  bool is_text(TokenId) const override { return true; }
  std::size_t held() const override { return 0; }

 private:
  std::deque<Parts> script_;
};

const std::deque<Parts> thought_and_calls = {
    {ReasoningDelta{"Hm"}},
    {ReasoningDelta{"m."}},
    {ContentDelta{"Wait"}},
    {ToolCallDelta{.index = 0, .id = "call_1", .name = "f", .arguments = ""}},
    {ToolCallDelta{.index = 0, .id = {}, .name = {}, .arguments = "{\"a\":"}},
    {ToolCallDelta{.index = 0, .id = {}, .name = {}, .arguments = "1}"}, ReplyWarning{"odd"}},
    {ToolCallDelta{.index = 1, .id = "call_2", .name = "g", .arguments = "{}"}},
};

class ChatWriterScene : public testing::Test {
 protected:
  // The response to an answer with this script.
  Reply write(const std::deque<Parts>& script, ChatOutput output, bool streams) {
    const auto exchange = std::make_shared<RecordedExchange>();
    const auto call = scene_.make_call("{}", exchange);
    ResponseFrame frame = make_frame(*call, "chatcmpl-", "m");
    frame.stream.streams = streams;
    const auto writer = make_chat_writer(output, frame, *tokenizer_);
    if (streams) call->begin_stream();
    PreparedRequest request;
    request.parsers.push_back(std::make_unique<ScriptedParser>(script));
    AnswerReader reader(*tokenizer_, request, 0);
    for (std::size_t i = 0; i < script.size(); ++i) {
      const Parts parts = reader.take(Sampled{.token = 60, .alternatives = {}});
      if (!parts.empty()) writer->write(*call, 0, parts, reader);
    }
    reader.take(Finished{});
    writer->finish(*call, 0, reader.answer());
    std::vector<Answer> results;
    results.push_back(std::move(reader.answer()));
    writer->finish_all(*call, results);
    HttpResponse response = exchange->wait();
    return {response.status, response.headers, response.body};
  }

  Json message(ChatOutput output) {
    return write(thought_and_calls, output, /*streams=*/false).json().at("choices").at(0).at("message");
  }
  // The deltas of the stream, and its last finish_reason.
  std::vector<Json> deltas(ChatOutput output) {
    std::vector<Json> all;
    for (const Json& event : write(thought_and_calls, output, /*streams=*/true).events()) {
      if (event.is_object()) all.push_back(event.at("choices").at(0).at("delta"));
    }
    return all;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer(std::string(INFERNO_TEST_DATA) + "/models/llama");
  ServerScene scene_{nullptr};
};

TEST_F(ChatWriterScene, GivesReasoningAndCallsInTheirFields) {
  const Reply reply = write(thought_and_calls, {}, /*streams=*/false);
  const Json choice = reply.json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  const Json& message = choice.at("message");
  EXPECT_EQ(message.at("content"), "Wait");
  EXPECT_EQ(message.at("reasoning"), "Hmm.");
  EXPECT_EQ(message.at("reasoning_content"), "Hmm.");
  EXPECT_EQ(message.at("tool_calls").size(), 2u);
  EXPECT_EQ(message.at("tool_calls").at(0).dump(),
            R"({"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}})");
  EXPECT_EQ(reply.json().at("inferno").at("warnings"), Json::array({"odd"}));
}

TEST_F(ChatWriterScene, StreamsCallsPieceByPiece) {
  const std::vector<Json> found = deltas({});
  ASSERT_EQ(found.size(), 9u);
  EXPECT_EQ(found[0].at("role"), "assistant");
  EXPECT_EQ(found[1].dump(), R"({"reasoning":"Hm","reasoning_content":"Hm"})");
  EXPECT_EQ(found[3].dump(), R"({"content":"Wait"})");
  EXPECT_EQ(
      found[4].dump(),
      R"({"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]})");
  EXPECT_EQ(found[5].dump(), R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]})");
  EXPECT_EQ(found[7]["tool_calls"][0]["index"], 1);
  EXPECT_EQ(found[8], Json::object());
}

TEST_F(ChatWriterScene, LeavesReasoningOutIfAsked) {
  EXPECT_FALSE(message({.include_reasoning = false}).contains("reasoning"));
  for (const Json& delta : deltas({.include_reasoning = false}))
    EXPECT_FALSE(delta.contains("reasoning_content"));
}

TEST_F(ChatWriterScene, PutsReasoningWhereTheServerWasTold) {
  EXPECT_FALSE(message({.reasoning_format = ReasoningFormat::reasoning}).contains("reasoning_content"));
  EXPECT_FALSE(message({.reasoning_format = ReasoningFormat::reasoning_content}).contains("reasoning"));
  const ChatOutput mixed = {.reasoning_format = ReasoningFormat::none};
  EXPECT_EQ(message(mixed).at("content"), "<think>Hmm.</think>\n\nWait");
  std::string streamed;
  for (const Json& delta : deltas(mixed)) streamed += delta.value("content", "");
  EXPECT_EQ(streamed, "<think>Hmm.</think>\n\nWait");
}

TEST_F(ChatWriterScene, GivesOneCallIfTheyMustNotBeParallel) {
  EXPECT_EQ(message({.single_call = true}).at("tool_calls").size(), 1u);
  for (const Json& delta : deltas({.single_call = true})) {
    if (!delta.contains("tool_calls")) continue;
    EXPECT_EQ(delta["tool_calls"][0]["index"], 0);
  }
}

TEST_F(ChatWriterScene, HasNullForTheContentOfCallsAlone) {
  const std::deque<Parts> script = {
      {ToolCallDelta{.index = 0, .id = "call_1", .name = "f", .arguments = "{}"}}};
  const Json json = write(script, {}, /*streams=*/false).json();
  EXPECT_EQ(json.at("choices").at(0).at("message").at("content"), nullptr);
}

TEST_F(ChatWriterScene, StreamsAnEmptyAnswer) {
  const auto events = write({}, {}, /*streams=*/true).events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_EQ(events[1].at("choices").at(0).at("finish_reason"), "stop");
}

}  // namespace
}  // namespace inferno::server
