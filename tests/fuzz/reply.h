// A complete parsed reply, for the targets that parse replies. Every piece must be UTF-8, calls must be
// numbered in order, and only the first part of a call may have a name.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "chat/chat_format.h"
#include "chat/conversation.h"

namespace inferno::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

struct Reply {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  std::vector<std::string> warnings;
  bool operator==(const Reply&) const = default;

  void add(const std::vector<ReplyPart>& parts) {
    for (const ReplyPart& part : parts) {
      if (const auto* piece = std::get_if<ContentDelta>(&part)) {
        content += checked(piece->text);
      } else if (const auto* thought = std::get_if<ReasoningDelta>(&part)) {
        reasoning += checked(thought->text);
      } else if (const auto* call = std::get_if<ToolCallDelta>(&part)) {
        if (!call->id.empty()) calls.emplace_back(checked(call->name), "");
        require(static_cast<std::size_t>(call->index) + 1 == calls.size());
        calls.back().second += checked(call->arguments);
      } else if (const auto* warning = std::get_if<ReplyWarning>(&part)) {
        warnings.push_back(checked(warning->text));
      }
    }
  }

  // Pieces of invalid UTF-8 need not be UTF-8.
  bool expects_utf8 = true;

 private:
  const std::string& checked(const std::string& text) const {
    require(!expects_utf8 || !utf8::first_invalid(text));
    return text;
  }
};

inline Conversation offering_f() {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "?"}])", "messages");
  conversation.tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  return conversation;
}

}  // namespace inferno::fuzz
