// Parses replies in Harmony's channels, token by token: analysis is reasoning, final is content, commentary
// with a recipient is a tool call, commentary without one is a preamble and hence content. Control tokens are
// found by name, so every vocabulary that has them works. The parser never throws and never loses text: what
// violates the protocol comes back as content with a warning.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "chat/chat_format.h"

namespace inferno::harmony {

// nullopt for tokens that the vocabulary does not have.
struct ControlTokens {
  std::optional<TokenId> start, channel, message, constrain, end, finish, call;
  static ControlTokens of(const Tokenizer& tokenizer);
  // Whether replies can have channels.
  bool suffice() const { return start && channel && message; }
};

// <|return|>, <|call|>, <|endoftext|> and the vocabulary's own end tokens. <|end|> ends a message, not the
// reply, unless the vocabulary has no <|return|>.
std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer);

struct ParserSetup {
  const Conversation* conversation = nullptr;  // for the functions it offers; used only during construction
  // The end of the prompt, after its last <|start|>; nullopt: "assistant".
  std::optional<std::vector<TokenId>> opening;
};

// The tokenizer must outlive the result.
std::unique_ptr<ReplyParser> make_parser(const Tokenizer& tokenizer, const ParserSetup& setup);

}  // namespace inferno::harmony
