// A complete parsed reply, to compare with the expected one.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "chat/chat_format.h"

namespace inferno::testing {

struct Call {
  std::string name, arguments;
  bool operator==(const Call&) const = default;
};

struct Reply {
  std::string content, reasoning;
  std::vector<Call> calls;
  std::vector<std::string> warnings;
  bool operator==(const Reply&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Reply& reply) {
  out << "content [" << reply.content << "] reasoning [" << reply.reasoning << "]";
  for (const Call& call : reply.calls) out << " call " << call.name << " [" << call.arguments << "]";
  for (const std::string& warning : reply.warnings) out << " warning [" << warning << "]";
  return out;
}

// Also checks that calls are numbered in order and that only their first part has a name.
inline void add(Reply& reply, const std::vector<ReplyPart>& parts) {
  for (const ReplyPart& part : parts) {
    if (const auto* content = std::get_if<ContentDelta>(&part)) {
      EXPECT_FALSE(content->text.empty());
      reply.content += content->text;
    } else if (const auto* reasoning = std::get_if<ReasoningDelta>(&part)) {
      EXPECT_FALSE(reasoning->text.empty());
      reply.reasoning += reasoning->text;
    } else if (const auto* call = std::get_if<ToolCallDelta>(&part)) {
      const auto index = static_cast<std::size_t>(call->index);
      EXPECT_EQ(call->id.empty(), call->name.empty());
      if (!call->name.empty()) {
        EXPECT_EQ(index, reply.calls.size());
        reply.calls.push_back({call->name, ""});
      }
      ASSERT_EQ(index + 1, reply.calls.size());
      reply.calls.back().arguments += call->arguments;
    } else if (const auto* warning = std::get_if<ReplyWarning>(&part)) {
      reply.warnings.push_back(warning->text);
    }
  }
}

inline Reply parse(ReplyParser& parser, std::span<const TokenId> tokens) {
  Reply reply;
  for (const TokenId token : tokens) add(reply, parser.push(token));
  add(reply, parser.finish());
  return reply;
}

}  // namespace inferno::testing
