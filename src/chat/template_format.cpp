#include "chat/template_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "chat/conversation.h"
#include "chat/harmony/parser.h"
#include "chat/jinja/template.h"
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
    jinja::Rendered rendered = rendered_by(variant_for(conversation), conversation);
    Prompt prompt;
    prompt.tokens = options_.allow_control_tokens_in_user_text ? tokenizer_.encode_prompt(rendered.text)
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
    const Variant& chosen = variant_for(conversation);
    if (chosen.has_channels) {
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
  const Variant& variant_for(const Conversation& conversation) const {
    return with_tools_ && has_tools(conversation) ? *with_tools_ : usual_;
  }

  jinja::Rendered rendered_by(const Variant& chosen, const Conversation& conversation) const {
    jinja::RenderOptions options;
    options.clock = options_.clock;
    options.model_texts = chosen.source.model_texts;
    return chosen.parsed.render(template_variables(conversation, chosen.source.source), options);
  }

  // Whether the prompt ends with the opening tag. Only templates that mention it are rendered for this.
  bool opens_reasoning(const Variant& chosen, const Conversation& conversation) const {
    if (chosen.tags.open.empty() || !mentions(chosen.source.source, chosen.tags.open)) return false;
    std::string text = rendered_by(chosen, conversation).text;
    text.erase(text.find_last_not_of(" \n\r\t") + 1);
    return text.ends_with(chosen.tags.open);
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
