#include "chat/template_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "base/error.h"
#include "chat/conversation.h"
#include "chat/harmony/parser.h"
#include "chat/harmony/rules.h"
#include "chat/jinja/template.h"
#include "chat/reply/shape.h"
#include "chat/reply/text_reply.h"

namespace inferno {
namespace {

// Templates print arguments with tojson, which would quote a string again.
void parse_arguments(Json& message) {
  if (!message.contains("tool_calls") || !message.at("tool_calls").is_array()) return;
  for (Json& call : message.at("tool_calls")) {
    if (!call.is_object()) continue;
    const bool nested = call.contains("function") && call.at("function").is_object();
    Json& function = nested ? call.at("function") : call;
    if (!function.contains("arguments") || !function.at("arguments").is_string()) continue;
    auto parsed = parse_json_if_valid(function.at("arguments").get_ref<const std::string&>());
    if (parsed && parsed->is_object()) function["arguments"] = *std::move(parsed);
  }
}

void adapt(Json& message, const std::string& where, std::string_view source) {
  const std::string role = role_of(message, where);
  if (role == "developer" && source.find("developer") == std::string_view::npos) message["role"] = "system";
  if (message.contains("content") && message.at("content").is_array()) {
    message["content"] = text_of(message, where, "\n");
  }
  if (const auto reasoning = reasoning_of(message, where)) {
    for (const char* name : {"reasoning_content", "thinking"}) {
      if (!message.contains(name) && source.find(name) != std::string_view::npos) message[name] = *reasoning;
    }
  }
  parse_arguments(message);
}

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

// The vocabulary's end tokens and those that end a turn in this template: the files of fine-tuned models
// often list only the end tokens of the base model.
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

// One template and how replies to it are parsed.
struct Variant {
  Variant(const TemplateSource& given, const Tokenizer& tokenizer)
      : source(given),
        parsed(parse_template(given)),
        has_channels(harmony::ControlTokens::of(tokenizer).suffice() &&
                     mentions(given.source, "<|message|>")),
        tags(reasoning_tags(given.source, tokenizer)),
        syntax(tool_call_syntax(given.source)),
        stops(has_channels ? harmony::stop_tokens(tokenizer) : end_of_turn(given.source, tokenizer)) {}

  TemplateSource source;
  jinja::Template parsed;
  bool has_channels;
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

// The text after the last <|start|> that the template itself wrote.
std::optional<std::string> opening_of(const jinja::Rendered& rendered) {
  constexpr std::string_view start = "<|start|>";
  for (std::size_t at = rendered.text.rfind(start); at != std::string::npos;
       at = at == 0 ? std::string::npos : rendered.text.rfind(start, at - 1)) {
    const bool typed =
        std::any_of(rendered.user_spans.begin(), rendered.user_spans.end(),
                    [&](jinja::Span span) { return span.begin < at + start.size() && at < span.end; });
    if (typed) continue;
    std::string opening = rendered.text.substr(at + start.size());
    // The parser expects this author anyway, and does not mistake its name for the beginning of the reply.
    return opening == "assistant" ? std::nullopt : std::optional(std::move(opening));
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

  using ChatFormat::render;
  Prompt render(const Conversation& conversation, std::size_t max_tokens) const override {
    const Variant& chosen = variant_for(conversation);
    jinja::Rendered rendered = conversation.continue_final_message
                                   ? rendered_inside_last(chosen, conversation)
                                   : rendered_by(chosen, conversation);
    auto opening = chosen.has_channels ? opening_of(rendered) : std::nullopt;
    if (options_.allow_control_tokens_in_user_text) rendered.user_spans.clear();
    auto tokens = tokenizer_.encode_within(spans_of(rendered), max_tokens);
    return {.tokens = tokens ? *std::move(tokens) : std::vector<TokenId>{},
            .text = std::move(rendered.text),
            .is_too_long = !tokens,
            .opening = std::move(opening)};
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

  using ChatFormat::parser;
  std::unique_ptr<ReplyParser> parser(const Conversation& conversation, const Prompt& prompt) const override {
    const Variant& chosen = variant_for(conversation);
    if (chosen.has_channels) {
      harmony::ParserSetup setup{.conversation = &conversation, .opening = {}};
      if (prompt.opening) setup.opening = tokenizer_.encode_prompt(*prompt.opening);
      return harmony::make_parser(tokenizer_, setup);
    }
    return make_text_parser(tokenizer_, {.stop_tokens = stop_tokens(),
                                         .tags = chosen.tags,
                                         .begins = begins(chosen, conversation, prompt),
                                         .syntax = chosen.syntax,
                                         .conversation = &conversation});
  }

  ReplyShape shape(const Conversation& conversation, const Prompt& prompt) const override {
    const Variant& chosen = variant_for(conversation);
    if (chosen.has_channels) {
      ReplyShape shape{.kind = ReplyShape::Kind::channels};
      if (prompt.opening) shape.begun = harmony::begun_message(*prompt.opening, "");
      return shape;
    }
    ReplyShape shape{.kind = ReplyShape::Kind::text,
                     .tags = chosen.tags,
                     .begins = begins(chosen, conversation, prompt),
                     .syntax = chosen.syntax};
    if (conversation.continue_final_message && shape.begins == ReplyBegins::in_content) {
      shape.begun = {{.is_control = false, .text = continued_content(chosen, conversation)}};
    }
    return shape;
  }

 private:
  const Variant& variant_for(const Conversation& conversation) const {
    return with_tools_ && has_tools(conversation) ? *with_tools_ : usual_;
  }

  jinja::Rendered rendered_by(const Variant& chosen, const Conversation& conversation) const {
    jinja::RenderOptions options;
    options.clock = options_.clock;
    options.model_texts = chosen.source.model_texts;
    return chosen.parsed.render(template_variables(conversation, chosen.source.source), options);
  }

  // The prompt up to the end of the last message's content, as Hugging Face's apply_chat_template finds it:
  // by a tag at its end. Its blank tells whether the template trims the content.
  jinja::Rendered rendered_inside_last(const Variant& chosen, const Conversation& conversation) const {
    constexpr std::string_view tag = "CONTINUE_FINAL_MESSAGE_TAG ";
    check_form(conversation);
    Conversation tagged = conversation;
    tagged.add_generation_prompt = false;
    const std::string where = fmt::format("messages[{}]", tagged.messages.size() - 1);
    tagged.messages.back()["content"] = text_of(tagged.messages.back(), where, "\n") + std::string(tag);
    jinja::Rendered rendered = rendered_by(chosen, tagged);
    const std::size_t at = rendered.text.rfind(tag.substr(0, tag.size() - 1));
    if (at == std::string::npos) {
      fail(ErrorKind::unsupported,
           "continue_final_message: the chat template does not show the content of the last message");
    }
    const bool trims = std::string_view(rendered.text).substr(at, tag.size()) != tag;
    rendered.text.resize(at);
    if (trims) rendered.text.erase(rendered.text.find_last_not_of(" \n\r\t") + 1);
    std::erase_if(rendered.user_spans, [&](jinja::Span span) { return span.begin >= rendered.text.size(); });
    for (jinja::Span& span : rendered.user_spans) span.end = std::min(span.end, rendered.text.size());
    return rendered;
  }

  static bool opens_reasoning(const Variant& chosen, const Prompt& prompt) {
    // A user may write the tag, too, but not at the end of a prompt whose template never does.
    if (chosen.tags.open.empty() || !mentions(chosen.source.source, chosen.tags.open)) return false;
    std::string_view text = prompt.text;
    text = text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
    return text.ends_with(chosen.tags.open);
  }

  static ReplyBegins begins(const Variant& chosen, const Conversation& conversation, const Prompt& prompt) {
    if (conversation.continue_final_message) return begins_inside_last(chosen, conversation);
    return opens_reasoning(chosen, prompt) ? ReplyBegins::inside_reasoning : ReplyBegins::anywhere;
  }

  // The text of the last message without its reasoning.
  static std::string continued_content(const Variant& chosen, const Conversation& conversation) {
    std::string text = text_of(conversation.messages.back(), "messages", "\n");
    const std::size_t close = chosen.tags.open.empty() ? std::string::npos : text.rfind(chosen.tags.close);
    if (close != std::string::npos) text.erase(0, close + chosen.tags.close.size());
    return text;
  }

  // Where a reply that continues the last message begins: inside its reasoning if that is not closed.
  static ReplyBegins begins_inside_last(const Variant& chosen, const Conversation& conversation) {
    if (chosen.tags.open.empty()) return ReplyBegins::in_content;
    const std::string text = text_of(conversation.messages.back(), "messages", "\n");
    const std::size_t open = text.rfind(chosen.tags.open);
    const bool is_inside =
        open != std::string::npos && text.find(chosen.tags.close, open) == std::string::npos;
    return is_inside ? ReplyBegins::inside_reasoning : ReplyBegins::in_content;
  }

  const Tokenizer& tokenizer_;
  ChatOptions options_;
  Variant usual_;
  std::optional<Variant> with_tools_;
};

}  // namespace

Json template_variables(const Conversation& conversation, std::string_view source) {
  check_form(conversation);
  Json variables = Json::object();
  variables["messages"] = conversation.messages;
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    adapt(variables["messages"][i], fmt::format("messages[{}]", i), source);
  }
  variables["tools"] = conversation.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = conversation.add_generation_prompt;
  if (!conversation.reasoning_effort.empty()) variables["reasoning_effort"] = conversation.reasoning_effort;
  if (!conversation.variables.is_object()) return variables;
  for (const auto& [name, value] : conversation.variables.items()) {
    if (name != "messages" && name != "tools" && name != "add_generation_prompt") variables[name] = value;
  }
  return variables;
}

std::unique_ptr<ChatFormat> make_template_format(const Tokenizer& tokenizer, const TemplateSource& usual,
                                                 const TemplateSource* with_tools,
                                                 const ChatOptions& options) {
  return std::make_unique<TemplateFormat>(tokenizer, usual, with_tools, options);
}

}  // namespace inferno
