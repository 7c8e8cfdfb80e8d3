// A constraint on a reply together with the reply's form, compiled into one grammar over tokens.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "chat/constraint/reply_constraint.h"
#include "chat/reply/shape.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace inferno {

// False if every reply is allowed: text of no special form.
bool restricts(const ReplyConstraint& constraint, const ReplyShape& shape);

// Takes milliseconds for ordinary constraints and never more than about a second. The grammar's notes() say
// what is not enforced. Throws ConstraintError if a constraint cannot be enforced, Error{invalid_request}
// soon after a stop is requested.
std::shared_ptr<const grammar::Grammar> compile_reply(const ReplyConstraint& constraint,
                                                      const ReplyShape& shape, const Tokenizer& tokenizer,
                                                      const std::stop_token& cancel = {});

// Takes what the prompt already has of the reply. False if no reply that the grammar allows begins like this.
bool begin_reply(grammar::Matcher& matcher, const ReplyShape& shape, const Tokenizer& tokenizer);

// The same text for constraints and forms that compile to the same grammar.
std::string cache_key(const ReplyConstraint& constraint, const ReplyShape& shape);

}  // namespace inferno
