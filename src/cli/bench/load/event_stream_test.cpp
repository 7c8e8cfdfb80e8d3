#include "cli/bench/load/event_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace inferno::load {
namespace {

std::string chunked(std::initializer_list<std::string> pieces) {
  std::string out =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& piece : pieces) out += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  return out + "0\r\n\r\n";
}

const std::string answer =
    chunked({"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":null}\n\n",
             ": ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n",
             "data: {\"choices\":[{\"delta\":{\"content\": \"two\"}}]}\r\n\r\ndata: "
             "{\"choices\":[{\"delta\":{\"reasonin",
             "g\":\"three\"}}]}\n\n", "data: {\"choices\":[],\"usage\": {\"completion_tokens\":3}}\n\n",
             "data: [DONE]\n\n"});

TEST(EventStream, CountsEventsHoweverTheBytesArrive) {
  for (std::size_t step = 1; step <= answer.size(); ++step) {
    EventStream stream;
    for (std::size_t at = 0; at < answer.size(); at += step) stream.read(answer.substr(at, step));
    EXPECT_EQ(stream.status(), 200);
    EXPECT_EQ(stream.text_events(), 3) << step;
    EXPECT_TRUE(stream.saw_end() && stream.is_whole()) << step;
    ASSERT_TRUE(stream.usage_event()) << step;
    EXPECT_EQ(*stream.usage_event(), "{\"choices\":[],\"usage\": {\"completion_tokens\":3}}");
    EXPECT_EQ(stream.problem(), "");
  }
}

TEST(EventStream, KeepsTheBodyOfAResponseWithoutEvents) {
  EventStream stream;
  stream.read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nbusy");
  EXPECT_EQ(stream.status(), 429);
  EXPECT_EQ(stream.body(), "busy");
  EXPECT_TRUE(stream.is_whole());
}

TEST(EventStream, ReadsToTheEndOfTheConnectionWithoutALength) {
  EventStream stream;
  stream.read("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"text\":\"a\"}\n\n");
  EXPECT_FALSE(stream.is_whole());
  stream.close();
  EXPECT_TRUE(stream.is_whole());
  EXPECT_EQ(stream.text_events(), 1);
}

TEST(EventStream, ReportsErrorEventsAndBrokenResponses) {
  EventStream event, garbage, chunk, cut;
  event.read(chunked({"data: {\"error\":{\"message\":\"stopping\"}}\n\n"}));
  EXPECT_EQ(event.problem(), "{\"error\":{\"message\":\"stopping\"}}");
  garbage.read("SSH-2.0\r\n\r\n");
  EXPECT_EQ(garbage.problem(), "the response is not HTTP");
  chunk.read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_EQ(chunk.problem(), "malformed chunk in the response");
  cut.read(answer.substr(0, answer.size() / 2));
  cut.close();
  EXPECT_FALSE(cut.is_whole());
}

}  // namespace
}  // namespace inferno::load
