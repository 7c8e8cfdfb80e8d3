#include "chat/harmony/rules.h"

#include <algorithm>
#include <array>
#include <optional>

namespace inferno::harmony {
namespace {

using grammar::Counts;
using grammar::Part;
using grammar::Rules;

constexpr std::string_view function_namespace = "functions.";

class ReplyRules {
 public:
  ReplyRules(Rules& rules, const ControlTokens& tokens, const ReplyRuleParts& parts)
      : rules_(rules),
        parts_(parts),
        channel_(token(tokens.channel)),
        message_(token(tokens.message)),
        constrain_(token(tokens.constrain)),
        end_(token(tokens.end)),
        finish_(tokens.finish ? token(tokens.finish) : end_),
        call_(tokens.call ? token(tokens.call) : finish_),
        next_(rules.sequence({token(tokens.start), rules.literal("assistant")})) {}

  Part reply() {
    std::vector<Part> last;
    if (!parts_.must_call) last.push_back(final_message());
    for (const ReplyRuleParts::Call& call : parts_.calls) last.push_back(call_message(call));
    // A preamble announces a call. Without functions the channel would be one more place for the answer.
    std::vector<Part> before = {spoken("analysis")};
    if (!parts_.calls.empty()) before.push_back(spoken("commentary"));
    const Part others = rules_.sequence({rules_.either(std::move(before)), next_});
    return rules_.sequence({rules_.repeat(others, Counts{}), rules_.either(std::move(last))});
  }

 private:
  Part token(std::optional<TokenId> id) { return id ? rules_.token({*id}) : rules_.never(); }

  Part spoken(std::string_view channel) {
    return rules_.sequence({channel_, rules_.literal(channel), message_, rules_.free_text(), end_});
  }

  Part final_message() {
    const Part type = parts_.text && parts_.text_is_json ? optional_json_type() : rules_.empty();
    const Part body = parts_.text ? *parts_.text : rules_.free_text();
    return rules_.sequence({channel_, rules_.literal("final"), type, message_, body, finish_});
  }

  // gpt-oss writes the recipient before or after the channel, and the content type in three ways or not.
  Part call_message(const ReplyRuleParts::Call& call) {
    const Part recipient = rules_.literal(" to=" + std::string(function_namespace) + call.name);
    const Part commentary = rules_.literal("commentary");
    const Part before = rules_.sequence({recipient, channel_, commentary});
    const Part after = rules_.sequence({channel_, commentary, recipient});
    return rules_.sequence(
        {rules_.either({before, after}), optional_json_type(), message_, call.arguments, call_});
  }

  Part optional_json_type() {
    if (!json_type_) {
      const Part json = rules_.literal("json");
      const Part constrained = rules_.sequence({rules_.optional(rules_.literal(" ")), constrain_, json});
      json_type_ = rules_.optional(rules_.either({rules_.literal(" json"), constrained}));
    }
    return *json_type_;
  }

  Rules& rules_;
  const ReplyRuleParts& parts_;
  Part channel_, message_, constrain_, end_, finish_, call_;
  Part next_;  // <|start|>assistant
  std::optional<Part> json_type_;
};

}  // namespace

Part reply_rules(Rules& rules, const ControlTokens& tokens, const ReplyRuleParts& parts) {
  return ReplyRules(rules, tokens, parts).reply();
}

std::vector<ReplyPiece> begun_message(std::string_view opening, std::string_view text) {
  constexpr std::array<std::string_view, 3> controls = {"<|channel|>", "<|constrain|>", "<|message|>"};
  opening.remove_prefix(std::min(opening.find_first_of(" <"), opening.size()));
  std::vector<ReplyPiece> pieces;
  bool in_body = false;
  while (!in_body && !opening.empty()) {
    const auto control =
        std::ranges::find_if(controls, [&](std::string_view token) { return opening.starts_with(token); });
    const bool is_control = control != controls.end();
    const std::size_t size = is_control ? control->size() : std::min(opening.find('<', 1), opening.size());
    pieces.push_back({.is_control = is_control, .text = std::string(opening.substr(0, size))});
    in_body = is_control && *control == "<|message|>";
    opening.remove_prefix(size);
  }
  const std::string body = std::string(opening) + std::string(text);
  if (!body.empty()) pieces.push_back({.is_control = false, .text = body});
  return pieces;
}

}  // namespace inferno::harmony
