#include "server/openai/responses_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/exchange_scene.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno::server {
namespace {

// Hands the parts of an answer to a writer as generation does.
class ResponseScene {
 public:
  explicit ResponseScene(ResponseOptions options) {
    options.response = {{"id", "resp_abc"}, {"object", "response"}, {"status", "in_progress"}};
    options.tokenizer = tokenizer_.get();
    if (options.streams) call_->begin_stream();
    writer_ = make_response_writer(std::move(options), *call_);
  }

  void write(const std::vector<ReplyPart>& parts) { writer_->write(*call_, 0, parts, reader_); }
  Reply finish(const std::string& reason) {
    Answer& answer = reader_.answer();
    answer.finish_reason = reason;
    answer.finished.prompt_tokens = 5;
    writer_->finish(*call_, 0, answer);
    std::vector<Answer> results = {answer};
    writer_->finish_all(*call_, results);
    return reply();
  }
  Reply fail(const ApiError& error) {
    call_->fail(error);
    return reply();
  }
  Answer& answer() { return reader_.answer(); }

 private:
  Reply reply() {
    HttpResponse response = exchange_->wait();
    return {response.status, std::move(response.headers), std::move(response.body)};
  }

  std::unique_ptr<Tokenizer> tokenizer_ = parse_tokenizer(made_up_json(), "made-up.json");
  ServerScene server_{nullptr};
  std::shared_ptr<RecordedExchange> exchange_ = std::make_shared<RecordedExchange>();
  std::shared_ptr<Call> call_ = server_.make_call("{}", exchange_);
  PreparedRequest request_;
  AnswerReader reader_{*tokenizer_, request_};
  std::unique_ptr<AnswerWriter> writer_;
};

TEST(ResponseWriter, NumbersEventsFromCreatedToCompleted) {
  ResponseScene scene({.response = {}, .streams = true});
  scene.write({ReasoningDelta{"Hm."}});
  scene.write({ContentDelta{"Hi"}});
  const Reply reply = scene.finish("stop");
  const std::vector<Json> events = reply.events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events[0].at("type"), "response.created");
  EXPECT_EQ(events[1].at("type"), "response.in_progress");
  EXPECT_EQ(events.back().at("type"), "response.completed");
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].at("sequence_number"), i);
    EXPECT_NE(reply.text.find("event: " + events[i].at("type").get<std::string>() + "\ndata: "),
              std::string::npos);
  }
  const Json& response = events.back().at("response");
  EXPECT_EQ(response.at("status"), "completed");
  EXPECT_EQ(response.at("output").size(), 2u);
  EXPECT_EQ(response.at("usage").at("input_tokens"), 5);
  EXPECT_EQ(reply.text.find("[DONE]"), std::string::npos);
}

TEST(ResponseWriter, SaysTheSameInOneObject) {
  ResponseScene streamed({.response = {}, .streams = true}), whole({.response = {}});
  for (ResponseScene* scene : {&streamed, &whole}) {
    scene->write({ReasoningDelta{"Hm."}, ContentDelta{"Hi"}});
    scene->write({ToolCallDelta{.index = 0, .id = "call_1", .name = "f", .arguments = "{}"}});
  }
  const Json last = streamed.finish("tool_calls").events().back().at("response");
  const Json response = whole.finish("tool_calls").json();
  EXPECT_EQ(response.at("output"), last.at("output"));
  EXPECT_EQ(response.at("output")[2].at("arguments"), "{}");
}

TEST(ResponseWriter, IsIncompleteAtTheLimit) {
  ResponseScene scene({.response = {}, .streams = true});
  scene.write({ContentDelta{"Hi"}});
  const Json last = scene.finish("length").events().back();
  EXPECT_EQ(last.at("type"), "response.incomplete");
  EXPECT_EQ(last.at("response").at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(last.at("response").at("output")[0].at("status"), "incomplete");
}

TEST(ResponseWriter, CompletesAnEmptyAnswer) {
  ResponseScene scene({.response = {}, .streams = true});
  const std::vector<Json> events = scene.finish("stop").events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("type"), "response.created");
  EXPECT_EQ(events[2].at("response").at("output"), Json::array());
}

TEST(ResponseWriter, LeavesReasoningOutIfItIsNotWanted) {
  ResponseScene scene({.response = {}, .include_reasoning = false});
  scene.write({ReasoningDelta{"Hm."}, ContentDelta{"Hi"}});
  const Json output = scene.finish("stop").json().at("output");
  ASSERT_EQ(output.size(), 1u);
  EXPECT_EQ(output[0].at("type"), "message");
}

TEST(ResponseWriter, KeepsOneCallIfOnlyOneIsAllowed) {
  ResponseScene scene({.response = {}, .single_call = true});
  scene.write({ToolCallDelta{.index = 0, .id = "call_1", .name = "f", .arguments = "{}"}});
  scene.write({ToolCallDelta{.index = 1, .id = "call_2", .name = "g", .arguments = "{}"}});
  const Json output = scene.finish("tool_calls").json().at("output");
  ASSERT_EQ(output.size(), 1u);
  EXPECT_EQ(output[0].at("name"), "f");
}

TEST(ResponseWriter, GivesEachTokenOfTheTextItsLogProbability) {
  ResponseScene scene({.response = {}, .streams = true, .logprobs = true});
  const auto token = [](const char* bytes) {
    return ContentToken{.sampled = {.token = 65, .logprob = -1, .alternatives = {}}, .bytes = bytes};
  };
  scene.answer().content_tokens = {token("Hel")};
  scene.write({ContentDelta{"Hello"}});
  scene.answer().content_tokens.push_back(token("lo"));
  scene.write({ToolCallDelta{.index = 0, .id = "call_1", .name = "f", .arguments = "{}"}});
  const Reply reply = scene.finish("tool_calls");
  std::size_t sent = 0;
  for (const Json& event : reply.events()) {
    if (event.at("type") == "response.output_text.delta") sent += event.at("logprobs").size();
  }
  EXPECT_EQ(sent, 2u);
  const Json message = reply.events().back().at("response").at("output")[0];
  EXPECT_EQ(message.at("content")[0].at("logprobs").size(), 2u);
}

TEST(ResponseWriter, EndsAFailedStreamWithTheResponseSoFar) {
  ResponseScene scene({.response = {}, .streams = true});
  scene.write({ContentDelta{"Hi"}});
  const Json last = scene.fail(ApiError(503, "server_error", "the engine stopped")).events().back();
  EXPECT_EQ(last.at("type"), "response.failed");
  EXPECT_EQ(last.at("response").at("status"), "failed");
  EXPECT_EQ(last.at("response").at("error").at("code"), "server_error");
  EXPECT_EQ(last.at("response").at("output")[0].at("content")[0].at("text"), "Hi");
}

TEST(ResponseWriter, FailsWithAStatusBeforeTheFirstEvent) {
  ResponseScene scene({.response = {}, .streams = true});
  const Reply reply = scene.fail(ApiError(503, "server_error", "the engine stopped"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.json().at("error").at("message"), "the engine stopped");
}

}  // namespace
}  // namespace inferno::server
