#include "chat/harmony_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/call_ids.h"
#include "chat/harmony_header.h"
#include "chat/reply_parts.h"

namespace inferno::harmony {
namespace {

class HarmonyParser : public ReplyParser {
 public:
  HarmonyParser(const Tokenizer& tokenizer, const ParserSetup& setup)
      : tokenizer_(tokenizer),
        tokens_(ControlTokens::of(tokenizer)),
        stops_(stop_tokens(tokenizer)),
        replacement_(tokenizer.decode_style().replacement),
        header_(setup.opening ? Header::Begin::after_start : Header::Begin::after_author) {
    if (setup.conversation != nullptr) {
      ids_ = CallIds(*setup.conversation);
      functions_ = offered_functions(*setup.conversation);
    }
    if (!setup.opening) return;
    for (const TokenId token : *setup.opening) take(token);
    parts_ = {};  // the prompt's own words are no part of the reply, but a call it began is
    if (in_body_ && destination_ == Destination::tool_call) announce_call();
  }

  std::vector<ReplyPart> push(TokenId token) override {
    take(token);
    return parts_.take();
  }

  std::vector<ReplyPart> finish() override {
    has_arguments_ = true;  // of a call that was cut off none are made up
    end_message();
    return parts_.take();
  }

 private:
  KnowsFunction knows() const {
    return [this](std::string_view name) { return functions_.contains(name); };
  }

  void take(TokenId token) {
    if (token < 0 || token >= tokenizer_.size()) {
      parts_.warning(fmt::format("token {} is not in the vocabulary", token));
    } else if (token == tokens_.start) {
      take_start();
    } else if (token == tokens_.channel) {
      take_channel();
    } else if (token == tokens_.message) {
      take_message();
    } else if (token == tokens_.constrain) {
      take_constrain();
    } else if (token == tokens_.end || std::find(stops_.begin(), stops_.end(), token) != stops_.end()) {
      end_message();
    } else {
      take_text(tokenizer_.bytes(token));
    }
  }

  void take_start() {
    if (in_body_) parts_.warning("the model began a message inside another");
    if (in_body_ || !header_.is_empty()) end_message();
    header_ = Header(Header::Begin::after_start);
  }

  void take_channel() {
    if (in_body_) {
      parts_.warning("the model began a message inside another");
      end_message();
    }
    if (header_.channel()) return;
    end_message();
    header_.channel();
  }

  void take_constrain() {
    if (in_body_) {
      parts_.warning("the model wrote <|constrain|> inside a message");
    } else {
      header_.constrain();
    }
  }

  void take_message() {
    if (in_body_) {
      parts_.warning("the model wrote <|message|> inside a message");
      return;
    }
    const Address address = header_.address(knows());
    if (!address.warning.empty()) parts_.warning(address.warning);
    open_body(Destination::content);
    write(address.stray);
    send(utf8::take_all(held_, replacement_));
    held_.clear();
    open_body(address.destination);
    if (destination_ != Destination::tool_call) return;
    ++call_;
    has_arguments_ = false;
    function_ = address.function;
    announce_call();
  }

  void announce_call() { parts_.open_call(call_, ids_.make(call_), function_); }

  void open_body(Destination destination) {
    in_body_ = true;
    destination_ = destination;
  }

  void take_text(std::string_view bytes) {
    while (!in_body_ && !bytes.empty()) {
      header_.byte(bytes.front());
      bytes.remove_prefix(1);
      if (!header_.is_possible(knows())) abandon_header();
    }
    if (in_body_) write(bytes);
  }

  // The header was none: what it held is text, and so is what follows.
  void abandon_header() {
    const Remains remains = header_.remains();
    if (!remains.warning.empty()) parts_.warning(remains.warning);
    open_body(remains.destination);
    write(remains.text);
  }

  void write(std::string_view bytes) {
    held_ += bytes;
    send(utf8::take_decided(held_, replacement_));
  }

  void send(std::string_view text) {
    if (text.empty()) return;
    switch (destination_) {
      case Destination::content: parts_.content(text); break;
      case Destination::reasoning: parts_.reasoning(text); break;
      case Destination::tool_call:
        has_arguments_ = true;
        parts_.arguments(call_, text);
        break;
    }
  }

  void end_message() {
    if (!in_body_) abandon_header();
    send(utf8::take_all(held_, replacement_));
    held_.clear();
    if (destination_ == Destination::tool_call && !has_arguments_) parts_.arguments(call_, "{}");
    in_body_ = false;
    destination_ = Destination::content;
    header_ = Header(Header::Begin::without_start);
  }

  const Tokenizer& tokenizer_;
  ControlTokens tokens_;
  std::vector<TokenId> stops_;
  utf8::Replacement replacement_;
  CallIds ids_;
  std::set<std::string, std::less<>> functions_;

  ReplyParts parts_;
  Header header_;
  bool in_body_ = false;
  Destination destination_ = Destination::content;  // of the body
  std::string held_;                                // bytes of a character that may still be completed
  int call_ = -1;
  std::string function_;
  bool has_arguments_ = false;
};

}  // namespace

ControlTokens ControlTokens::of(const Tokenizer& tokenizer) {
  return {.start = tokenizer.special("<|start|>"),
          .channel = tokenizer.special("<|channel|>"),
          .message = tokenizer.special("<|message|>"),
          .constrain = tokenizer.special("<|constrain|>"),
          .end = tokenizer.special("<|end|>"),
          .finish = tokenizer.special("<|return|>"),
          .call = tokenizer.special("<|call|>")};
}

std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer) {
  const ControlTokens tokens = ControlTokens::of(tokenizer);
  std::vector<TokenId> stops;
  if (tokens.finish) stops.push_back(*tokens.finish);
  if (tokens.call) stops.push_back(*tokens.call);
  if (const auto end_of_text = tokenizer.special("<|endoftext|>")) stops.push_back(*end_of_text);
  for (const TokenId token : tokenizer.end_tokens()) {
    if (token == tokens.end && tokens.finish) continue;
    if (std::find(stops.begin(), stops.end(), token) == stops.end()) stops.push_back(token);
  }
  return stops;
}

std::unique_ptr<ReplyParser> make_parser(const Tokenizer& tokenizer, const ParserSetup& setup) {
  return std::make_unique<HarmonyParser>(tokenizer, setup);
}

}  // namespace inferno::harmony
