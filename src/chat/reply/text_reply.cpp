#include "chat/reply/text_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "chat/conversation.h"

namespace inferno {
namespace {

class TextReplyParser : public ReplyParser {
 public:
  TextReplyParser(const Tokenizer& tokenizer, TextReplySetup setup)
      : tokenizer_(tokenizer),
        setup_(std::move(setup)),
        detokenizer_(tokenizer),
        splitter_(setup_.tags, setup_.begins) {
    if (setup_.conversation != nullptr && has_tools(*setup_.conversation)) {
      calls_.emplace(setup_.syntax, *setup_.conversation);
    }
    setup_.conversation = nullptr;
  }

  std::vector<ReplyPart> push(TokenId token) override {
    if (token < 0 || token >= tokenizer_.size()) {
      parts_.warning(fmt::format("token {} is not in the vocabulary", token));
    } else if (is_text(token)) {
      send(splitter_.push(detokenizer_.push(token)));
    }
    return parts_.take();
  }

  std::vector<ReplyPart> finish() override {
    send(splitter_.push(detokenizer_.finish()));
    send(splitter_.finish());
    if (calls_) calls_->finish(parts_);
    return parts_.take();
  }

  // Control tokens are not text, except those that mark reasoning and tool calls.
  bool is_text(TokenId token) const override {
    if (token < 0 || token >= tokenizer_.size()) return false;
    const auto& stops = setup_.stop_tokens;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) return false;
    if (!tokenizer_.is_special(token)) return true;
    const std::string_view text = tokenizer_.bytes(token);
    return text == setup_.tags.open || text == setup_.tags.close || is_tool_call_marker(text);
  }

  std::size_t held() const override {
    return detokenizer_.held() + splitter_.held() + (calls_ ? calls_->held() : 0);
  }

 private:
  void send(const ReasoningSplitter::Split& split) {
    parts_.reasoning(split.reasoning);
    if (calls_) {
      calls_->push(split.content, parts_);
    } else {
      parts_.content(split.content);
    }
  }

  const Tokenizer& tokenizer_;
  TextReplySetup setup_;
  Detokenizer detokenizer_;
  ReasoningSplitter splitter_;
  std::optional<ToolCallExtractor> calls_;
  ReplyParts parts_;
};

}  // namespace

ReasoningSplitter::ReasoningSplitter(ReasoningTags tags, ReplyBegins begins)
    : tags_(tags),
      begins_(begins),
      state_(tags.open.empty() || begins == ReplyBegins::in_content ? State::content : State::before) {}

void ReasoningSplitter::take(char byte, Split& split) {
  switch (state_) {
    case State::before: take_before(byte, split); return;
    case State::inside: take_inside(byte, split); return;
    case State::after:
      if (byte == '\n' || byte == '\r') return;
      state_ = State::content;
      split.content += byte;
      return;
    case State::content: split.content += byte; return;
  }
}

// Also if the prompt ends with the opening tag: some models repeat it.
void ReasoningSplitter::take_before(char byte, Split& split) {
  held_ += byte;
  const std::size_t first = held_.find_first_not_of(" \n\r\t");
  if (first == std::string::npos) return;
  const std::string_view begun = std::string_view(held_).substr(first);
  if (begun == tags_.open) {
    held_.clear();
    state_ = State::inside;
  } else if (!tags_.open.starts_with(begun)) {
    const std::string text = std::exchange(held_, {});
    state_ = begins_ == ReplyBegins::inside_reasoning ? State::inside : State::content;
    for (const char held : text) take(held, split);
  }
}

// Holds back line breaks and the start of the closing tag.
void ReasoningSplitter::take_inside(char byte, Split& split) {
  held_ += byte;
  while (!held_.empty()) {
    const std::size_t first = held_.find_first_not_of("\n\r");
    if (first == std::string::npos) {
      if (!has_text_) held_.clear();  // line breaks after the opening tag
      return;
    }
    const std::string_view begun = std::string_view(held_).substr(first);
    if (begun == tags_.close) {
      held_.clear();
      state_ = State::after;
      return;
    }
    if (tags_.close.starts_with(begun)) return;
    split.reasoning.append(held_, 0, first + 1);
    held_.erase(0, first + 1);
    has_text_ = true;
  }
}

ReasoningSplitter::Split ReasoningSplitter::push(std::string_view text) {
  Split split;
  for (const char byte : text) take(byte, split);
  return split;
}

ReasoningSplitter::Split ReasoningSplitter::finish() {
  Split split;
  const bool reasons =
      state_ == State::inside || (state_ == State::before && begins_ == ReplyBegins::inside_reasoning);
  (reasons ? split.reasoning : split.content) = std::exchange(held_, {});
  return split;
}

std::unique_ptr<ReplyParser> make_text_parser(const Tokenizer& tokenizer, TextReplySetup setup) {
  return std::make_unique<TextReplyParser>(tokenizer, std::move(setup));
}

}  // namespace inferno
