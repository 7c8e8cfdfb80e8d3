// What a reply in Harmony's channels may be, as rules over control tokens: which headers exist, which body
// follows each, and which token ends it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/harmony/parser.h"
#include "chat/reply/rule_parts.h"
#include "chat/reply/shape.h"
#include "grammar/rules.h"

namespace inferno::harmony {

// A reply from the author of its first message on: any number of analysis messages and, if functions are
// offered, preambles; then a final message or a call. The vocabulary must have tokens for channels.
grammar::Part reply_rules(grammar::Rules& rules, const ControlTokens& tokens, const ReplyRuleParts& parts);

// The pieces of a message that the prompt has begun, after its author. `opening` is Prompt::opening; `text`
// is the beginning of the message's text unless the opening contains it.
std::vector<ReplyPiece> begun_message(std::string_view opening, std::string_view text);

}  // namespace inferno::harmony
