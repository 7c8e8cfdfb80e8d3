// Any text as a reply with optional reasoning and tool calls. The split into pieces must not matter, content
// must be what the model wrote, in order, and a reply without calls must be complete.
#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "chat/conversation.h"
#include "chat/reply/text_reply.h"
#include "chat/reply/tool_calls.h"
#include "chat/stop_matcher.h"
#include "fuzz/guard.h"
#include "fuzz/reply.h"

namespace {

using namespace inferno;
using fuzz::Reply;
using fuzz::require;

constexpr std::array<std::string_view, 6> families = {
    "<tool_call>",       "<|start_header_id|> tools <|python_tag|>",
    "[TOOL_CALLS]",      "<|tool_call|>",
    "<|tool|><|/tool|>", "<tool_call> [TOOL_CALLS] <|tool_call|> functools <|python_tag|>"};

Reply extracted(std::string_view family, std::string_view text, std::size_t step) {
  static const Conversation conversation = fuzz::offering_f();
  ToolCallExtractor extractor(tool_call_syntax(family), conversation);
  ReplyParts parts;
  Reply reply;
  reply.expects_utf8 = step >= text.size() && !utf8::first_invalid(text);
  for (std::size_t at = 0; at < text.size(); at += step) {
    extractor.push(text.substr(at, step), parts);
    reply.add(parts.take());
  }
  extractor.finish(parts);
  reply.add(parts.take());
  reply.expects_utf8 = true;
  return reply;
}

bool is_subsequence(std::string_view part, std::string_view whole) {
  for (const char byte : part) {
    const std::size_t at = whole.find(byte);
    if (at == std::string_view::npos) return false;
    whole.remove_prefix(at + 1);
  }
  return true;
}

void split_reasoning(std::string_view text, std::size_t step, bool begins_inside) {
  const auto split = [&](std::size_t size) {
    ReasoningSplitter splitter({"<think>", "</think>"},
                               begins_inside ? ReplyBegins::inside_reasoning : ReplyBegins::anywhere);
    ReasoningSplitter::Split whole;
    const auto add = [&](const ReasoningSplitter::Split& piece) {
      whole.reasoning += piece.reasoning;
      whole.content += piece.content;
    };
    for (std::size_t at = 0; at < text.size(); at += size) add(splitter.push(text.substr(at, size)));
    add(splitter.finish());
    return whole;
  };
  const auto whole = split(std::max<std::size_t>(text.size(), 1));
  const auto pieces = split(step);
  require(whole.reasoning == pieces.reasoning && whole.content == pieces.content);
  require(is_subsequence(whole.reasoning + whole.content, text));
  if (text.find("<think>") == std::string_view::npos && !begins_inside) require(whole.content == text);
}

void match_stops(std::string_view text, std::size_t step) {
  const std::vector<std::string> stops = {std::string(text.substr(0, step)), "}}", "\n\n"};
  StopMatcher once(stops), often(stops);
  std::string whole = once.push(text), pieces;
  whole += once.finish();
  for (std::size_t at = 0; at < text.size(); at += step) pieces += often.push(text.substr(at, step));
  pieces += often.finish();
  require(whole == pieces && once.matched() == often.matched() && text.starts_with(whole));
  for (const std::string& stop : stops) require(stop.empty() || whole.find(stop) == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text = fuzz::text(data + 2, size - 2);
  const std::size_t step = data[1] % 16 + 1U;
  const std::string_view family = families[data[0] % families.size()];
  const Reply whole = extracted(family, text, std::max<std::size_t>(text.size(), 1));
  require(extracted(family, text, step) == whole);
  require(is_subsequence(whole.content, text));
  if (whole.calls.empty()) require(whole.content == text);
  split_reasoning(text, step, data[0] >= 128);
  match_stops(text, step);
  return 0;
}
