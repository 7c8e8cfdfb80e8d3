#include "chat/template_format.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "chat/harmony_parser.h"
#include "chat/message_fields.h"
#include "chat/text_reply.h"

namespace inferno {
namespace {

bool mentions(std::string_view source, std::string_view text) {
  return source.find(text) != std::string_view::npos;
}

ReasoningTags reasoning_tags(std::string_view source, const Tokenizer& tokenizer) {
  if (mentions(source, "[THINK]")) return {"[THINK]", "[/THINK]"};
  if (mentions(source, "<think>") || mentions(source, "</think>") || tokenizer.special("<think>")) {
    return {"<think>", "</think>"};
  }
  return {};
}

// The vocabulary's end tokens, and those that end a turn in this template: files of fine-tuned models often
// name only the base model's.
std::vector<TokenId> end_of_turn(std::string_view source, const Tokenizer& tokenizer) {
  constexpr std::string_view names[] = {"<|eot_id|>",      "<|im_end|>",    "<|end|>",        "<end_of_turn>",
                                        "<|end_of_turn|>", "<|endoftext|>", "<|end_of_text|>"};
  std::vector<TokenId> stops(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  const auto add = [&](std::string_view name) {
    const auto token = tokenizer.special(name);
    if (token && std::find(stops.begin(), stops.end(), *token) == stops.end()) stops.push_back(*token);
  };
  for (const std::string_view name : names) {
    if (mentions(source, name)) add(name);
  }
  if (mentions(source, "<|eot_id|>")) add("<|eom_id|>");  // ends a turn that waits for a tool
  return stops;
}

// One template and how replies to it are read.
struct Side {
  Side(const TemplateSource& given, const Tokenizer& tokenizer)
      : source(given),
        parsed(parse_template(given)),
        in_channels(harmony::ControlTokens::of(tokenizer).suffice() && mentions(given.source, "<|message|>")),
        tags(reasoning_tags(given.source, tokenizer)),
        syntax(tool_call_syntax(given.source)),
        stops(in_channels ? harmony::stop_tokens(tokenizer) : end_of_turn(given.source, tokenizer)) {}

  TemplateSource source;
  jinja::Template parsed;
  bool in_channels;
  ReasoningTags tags;
  ToolCallSyntax syntax;
  std::vector<TokenId> stops;
};

std::vector<TextSpan> spans_of(const jinja::Rendered& rendered) {
  std::vector<TextSpan> spans;
  const std::string_view text = rendered.text;
  std::size_t at = 0;
  const auto add = [&](std::size_t end, Origin origin) {
    if (end > at) spans.push_back({text.substr(at, end - at), origin});
    at = end;
  };
  for (const jinja::Span& span : rendered.user_spans) {
    add(span.begin, Origin::trusted);
    add(span.end, Origin::user);
  }
  add(text.size(), Origin::trusted);
  return spans;
}

// What follows the template's last <|start|>: not one that a user typed.
std::optional<std::string> opening_of(const jinja::Rendered& rendered) {
  constexpr std::string_view start = "<|start|>";
  for (std::size_t at = rendered.text.rfind(start); at != std::string::npos;
       at = at == 0 ? std::string::npos : rendered.text.rfind(start, at - 1)) {
    const bool typed =
        std::any_of(rendered.user_spans.begin(), rendered.user_spans.end(),
                    [&](jinja::Span span) { return span.begin < at + start.size() && at < span.end; });
    if (!typed) return rendered.text.substr(at + start.size());
  }
  return std::nullopt;
}

class TemplateFormat : public ChatFormat {
 public:
  TemplateFormat(const Tokenizer& tokenizer, const TemplateSource& usual, const TemplateSource* with_tools,
                 ChatOptions options)
      : tokenizer_(tokenizer), options_(std::move(options)), usual_(usual, tokenizer) {
    if (with_tools != nullptr) with_tools_.emplace(*with_tools, tokenizer);
  }

  std::string name() const override { return usual_.source.name; }

  Prompt render(const Conversation& conversation) const override {
    jinja::Rendered rendered = rendered_by(side(conversation), conversation);
    Prompt prompt;
    prompt.tokens = options_.user_text_may_hold_control_tokens ? tokenizer_.encode_prompt(rendered.text)
                                                               : tokenizer_.encode_spans(spans_of(rendered));
    prompt.text = std::move(rendered.text);
    return prompt;
  }

  std::vector<TokenId> stop_tokens() const override {
    std::vector<TokenId> stops = usual_.stops;
    if (with_tools_) {
      for (const TokenId token : with_tools_->stops) {
        if (std::find(stops.begin(), stops.end(), token) == stops.end()) stops.push_back(token);
      }
    }
    return stops;
  }

  std::unique_ptr<ReplyParser> parser(const Conversation& conversation) const override {
    const Side& chosen = side(conversation);
    if (chosen.in_channels) {
      harmony::ParserSetup setup{.conversation = &conversation, .opening = {}};
      if (const auto opening = opening_of(rendered_by(chosen, conversation))) {
        setup.opening = tokenizer_.encode_prompt(*opening);
      }
      return harmony::make_parser(tokenizer_, setup);
    }
    return make_text_parser(tokenizer_, {.stop_tokens = stop_tokens(),
                                         .tags = chosen.tags,
                                         .begins_inside = opens_reasoning(chosen, conversation),
                                         .syntax = chosen.syntax,
                                         .conversation = &conversation});
  }

 private:
  const Side& side(const Conversation& conversation) const {
    return with_tools_ && has_tools(conversation) ? *with_tools_ : usual_;
  }

  jinja::Rendered rendered_by(const Side& chosen, const Conversation& conversation) const {
    jinja::RenderOptions options;
    options.clock = options_.clock;
    options.model_texts = chosen.source.model_texts;
    return chosen.parsed.render(template_variables(conversation, chosen.source.source), options);
  }

  // Whether the prompt ends with the opening tag. Only templates that write it are rendered for this.
  bool opens_reasoning(const Side& chosen, const Conversation& conversation) const {
    if (chosen.tags.open.empty() || !mentions(chosen.source.source, chosen.tags.open)) return false;
    std::string text = rendered_by(chosen, conversation).text;
    text.erase(text.find_last_not_of(" \n\r\t") + 1);
    return text.ends_with(chosen.tags.open);
  }

  const Tokenizer& tokenizer_;
  ChatOptions options_;
  Side usual_;
  std::optional<Side> with_tools_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_template_format(const Tokenizer& tokenizer, const TemplateSource& usual,
                                                 const TemplateSource* with_tools,
                                                 const ChatOptions& options) {
  return std::make_unique<TemplateFormat>(tokenizer, usual, with_tools, options);
}

}  // namespace inferno
