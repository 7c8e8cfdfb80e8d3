// Replies in Harmony's channels, token by token: analysis is reasoning, final is content, commentary with a
// recipient is a tool call, commentary without one is a preamble and hence content. Control tokens are found
// by name, so that every vocabulary that has them can be read. Nothing makes the parser throw, and no text is
// lost: what breaks the protocol comes back as content with a warning.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "chat/chat_format.h"

namespace inferno::harmony {

// Those that the vocabulary has.
struct ControlTokens {
  std::optional<TokenId> start, channel, message, constrain, end, finish, call;
  static ControlTokens of(const Tokenizer& tokenizer);
  // Whether replies can come in channels at all.
  bool suffice() const { return start && channel && message; }
};

// <|return|>, <|call|>, <|endoftext|> and the vocabulary's own end tokens. <|end|> only ends one message of
// several and hence no reply, unless the vocabulary has no <|return|>.
std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer);

struct ParserSetup {
  const Conversation* conversation = nullptr;  // for the functions it offers; needed only while constructing
  // What the prompt wrote behind its last <|start|>; nullopt: "assistant".
  std::optional<std::vector<TokenId>> opening;
};

// The tokenizer must outlive the result.
std::unique_ptr<ReplyParser> make_parser(const Tokenizer& tokenizer, const ParserSetup& setup);

}  // namespace inferno::harmony
