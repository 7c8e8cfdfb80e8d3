#include "chat/text_reply.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/message_fields.h"

namespace inferno {
namespace {

class TextReplyParser : public ReplyParser {
 public:
  TextReplyParser(const Tokenizer& tokenizer, TextReplySetup setup)
      : tokenizer_(tokenizer),
        setup_(std::move(setup)),
        detokenizer_(tokenizer),
        splitter_(setup_.tags, setup_.begins_inside) {
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

 private:
  // Control tokens are none, but for those that mark reasoning and tool calls.
  bool is_text(TokenId token) const {
    const auto& stops = setup_.stop_tokens;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) return false;
    if (!tokenizer_.is_special(token)) return true;
    const std::string_view text = tokenizer_.bytes(token);
    return text == setup_.tags.open || text == setup_.tags.close || is_tool_call_marker(text);
  }

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

std::unique_ptr<ReplyParser> make_text_parser(const Tokenizer& tokenizer, TextReplySetup setup) {
  return std::make_unique<TextReplyParser>(tokenizer, std::move(setup));
}

}  // namespace inferno
