// What a reply in plain text may be, as rules: reasoning between its tags is free, then comes the constrained
// text or tool calls in the syntax of the model's family.
#pragma once

#include "chat/reply/rule_parts.h"
#include "chat/reply/shape.h"
#include "grammar/rules.h"
#include "text/tokenizer.h"

namespace inferno {

// Whether the syntax has a form of call that can be required.
bool can_call(const ToolCallSyntax& syntax);

// Calls are left out if the syntax has none.
grammar::Part text_reply_rules(grammar::Rules& rules, const Tokenizer& tokenizer, const ReplyShape& shape,
                               const ReplyRuleParts& parts);

}  // namespace inferno
