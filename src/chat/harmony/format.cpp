#include "chat/harmony/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "chat/conversation.h"
#include "chat/harmony/parser.h"
#include "chat/harmony/rules.h"
#include "chat/harmony/tools.h"
#include "chat/reply/shape.h"

namespace inferno::harmony {
namespace {

std::string effort_of(const Conversation& conversation) {
  std::string effort = conversation.reasoning_effort;
  if (const Json* given = find_member(conversation.variables, "reasoning_effort")) {
    if (effort.empty()) effort = text_member(*given, "reasoning_effort");
  }
  if (effort.empty()) return "medium";
  // Efforts that only other models have become the nearest one.
  static const std::map<std::string, std::string, std::less<>> known = {
      {"none", "low"},  {"minimal", "low"}, {"low", "low"}, {"medium", "medium"},
      {"high", "high"}, {"xhigh", "high"},  {"max", "high"}};
  const auto found = known.find(effort);
  if (found == known.end()) {
    fail(ErrorKind::invalid_request,
         fmt::format("reasoning_effort: expected low, medium or high, found \"{}\"", effort));
  }
  return found->second;
}

void replace_line(std::optional<std::string>& line, const Json& variables, const char* name) {
  if (!variables.is_object() || !variables.contains(name)) return;
  const Json& given = variables.at(name);
  line = given.is_null() ? std::nullopt : std::optional(text_member(given, name));
}

bool flag(const Json& variables, const char* name, bool otherwise) {
  const Json* found = find_member(variables, name);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: expected true or false, found {}", name, found->type_name()));
  }
  return found->get<bool>();
}

std::optional<System> system_of(const Conversation& conversation, std::chrono::local_seconds now) {
  const Json& variables = conversation.variables;
  if (!flag(variables, "system_message", true)) return std::nullopt;
  if (const Json* builtin = find_member(variables, "builtin_tools");
      builtin != nullptr && !builtin->empty()) {
    fail(ErrorKind::unsupported, "builtin_tools: gpt-oss's browser and python tools are not supported",
         {.why = "they would have to run inside Inferno", .next = "declare them as functions in \"tools\""});
  }
  const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(now));
  System system;
  system.date = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(today.year()),
                            static_cast<unsigned>(today.month()), static_cast<unsigned>(today.day()));
  system.effort = effort_of(conversation);
  system.calls_functions = has_tools(conversation);
  replace_line(system.identity, variables, "model_identity");
  replace_line(system.knowledge_cutoff, variables, "knowledge_cutoff");
  replace_line(system.date, variables, "current_date");
  if (const Json* channels = find_member(variables, "valid_channels")) {
    system.channels.clear();
    for (const Json& channel : *channels) system.channels.push_back(text_member(channel, "valid_channels"));
  }
  return system;
}

// The section "# Response Formats", if OpenAI's response_format has a schema.
std::string response_format_section(const Json& variables) {
  const Json* format = find_member(variables, "response_format");
  const Json* named = format == nullptr ? nullptr : find_member(*format, "json_schema");
  const Json* schema = named == nullptr ? nullptr : find_member(*named, "schema");
  if (schema == nullptr) return {};
  const Json* name = find_member(*named, "name");
  const Json* description = find_member(*named, "description");
  std::string text =
      "# Response Formats\n\n## " + (name == nullptr ? "response" : text_member(*name, "name"));
  text += "\n\n";
  if (description != nullptr) text += "// " + text_member(*description, "description") + "\n";
  return text + schema->dump(-1, ' ', false, Json::error_handler_t::replace);
}

// OpenAI's system and developer messages become developer messages, because Harmony's system message belongs
// to the model's maker.
class Converter {
 public:
  explicit Converter(const Conversation& conversation) : conversation_(conversation) {}

  std::vector<Message> convert() {
    const Json& messages = conversation_.messages;
    std::size_t next = 0;
    std::string instructions;
    for (; next < messages.size() && is_instruction(next); ++next) {
      const std::string text = text_of(messages[next], where(next), "");
      if (!text.empty()) instructions += (instructions.empty() ? "" : "\n\n") + text;
    }
    add_developer(instructions, /*first=*/true);
    for (; next < messages.size(); ++next) add(next);
    return std::move(result_);
  }

 private:
  static std::string where(std::size_t index) { return fmt::format("messages[{}]", index); }

  bool is_instruction(std::size_t index) const {
    const std::string role = role_of(conversation_.messages[index], where(index));
    return role == "system" || role == "developer";
  }

  void add_developer(const std::string& instructions, bool first) {
    std::vector<std::string> sections;
    if (!instructions.empty()) sections.push_back("# Instructions\n\n" + instructions);
    if (first && has_tools(conversation_)) {
      sections.push_back("# Tools\n\n" + render_functions(conversation_.tools));
    }
    std::string format = first ? response_format_section(conversation_.variables) : "";
    if (!format.empty()) sections.push_back(std::move(format));
    if (sections.empty()) return;
    result_.push_back({.author = "developer",
                       .recipient = {},
                       .channel = {},
                       .content_type = {},
                       .text = fmt::format("{}", fmt::join(sections, "\n\n"))});
  }

  void add(std::size_t index) {
    const Json& message = conversation_.messages[index];
    const std::string role = role_of(message, where(index));
    if (role == "system" || role == "developer") {
      add_developer(text_of(message, where(index), ""), /*first=*/false);
    } else if (role == "assistant") {
      add_assistant(message, where(index));
    } else if (role == "tool" || role == "function") {
      add_result(message, where(index));
    } else if (role == "user") {
      result_.push_back(with_header(message, {.author = with_name("user", message, where(index)),
                                              .recipient = {},
                                              .channel = {},
                                              .content_type = {},
                                              .text = text_of(message, where(index), "")}));
    } else {
      fail(ErrorKind::invalid_request,
           fmt::format("{}.role: expected system, developer, user, assistant or tool, found \"{}\"",
                       where(index), role));
    }
  }

  static std::string with_name(const std::string& role, const Json& message, const std::string& where) {
    const Json* name = find_member(message, "name");
    if (name == nullptr) return role;
    check_name(text_member(*name, where + ".name"), where + ".name");
    return role + ":" + name->get<std::string>();
  }

  // A message may set the parts of its Harmony header itself; null omits a part.
  static Message with_header(const Json& message, Message result) {
    const auto replace = [&](std::string& part, const char* name) {
      if (!message.contains(name)) return;
      part = message.at(name).is_null() ? "" : text_member(message.at(name), name);
      if (!part.empty()) {
        const bool constrained = part.starts_with("<|constrain|>");
        check_name(std::string_view(part).substr(constrained ? 13 : 0), name);
      }
    };
    replace(result.recipient, "recipient");
    replace(result.channel, "channel");
    replace(result.content_type, "content_type");
    return result;
  }

  void add_assistant(const Json& message, const std::string& where) {
    const std::string author = with_name("assistant", message, where);
    const Message plain{.author = author, .recipient = {}, .channel = {}, .content_type = {}, .text = {}};
    const std::string content = text_of(message, where, "");
    if (message.contains("channel") || message.contains("recipient")) {
      Message own = with_header(message, plain);
      own.text = content;
      result_.push_back(std::move(own));
      return;
    }
    const Json* calls = find_member(message, "tool_calls");
    const bool is_calling = calls != nullptr && calls->is_array() && !calls->empty();
    if (const auto reasoning = reasoning_of(message, where); reasoning && !reasoning->empty()) {
      Message analysis = plain;
      analysis.channel = "analysis";
      analysis.text = *reasoning;
      result_.push_back(std::move(analysis));
    }
    if (!is_calling || !content.empty()) {
      Message spoken = plain;
      spoken.channel = is_calling ? "commentary" : "final";
      spoken.text = content;
      result_.push_back(std::move(spoken));
    }
    for (std::size_t i = 0; is_calling && i < calls->size(); ++i) {
      add_call((*calls)[i], author, fmt::format("{}.tool_calls[{}]", where, i));
    }
  }

  void add_call(const Json& call, const std::string& author, const std::string& where) {
    const Json* nested = find_member(call, "function");
    const Json& function = nested == nullptr ? call : *nested;
    const Json* name = find_member(function, "name");
    if (name == nullptr)
      fail(ErrorKind::invalid_request, where + ".function: expected an object with a \"name\"");
    last_called_ = full_name(text_member(*name, where + ".function.name"));
    check_name(last_called_, where + ".function.name");
    if (const Json* id = find_member(call, "id"); id != nullptr && id->is_string()) {
      called_[id->get<std::string>()] = last_called_;
    }
    const Json* arguments = find_member(function, "arguments");
    std::string text = "{}";
    if (arguments != nullptr) {
      text = arguments->is_string() ? arguments->get<std::string>() : spaced_json(*arguments);
    }
    const Message message{.author = author,
                          .recipient = last_called_,
                          .channel = "commentary",
                          .content_type = "json",
                          .text = std::move(text)};
    result_.push_back(with_header(function, message));
  }

  static std::string full_name(const std::string& name) {
    const bool complete = name.starts_with("functions.") || name.starts_with("browser.") || name == "python";
    return complete ? name : "functions." + name;
  }

  // The id tells which call a result belongs to, else its name, else it belongs to the last call.
  void add_result(const Json& message, const std::string& where) {
    std::string author = last_called_;
    if (const Json* name = find_member(message, "name"))
      author = full_name(text_member(*name, where + ".name"));
    if (const Json* id = find_member(message, "tool_call_id"); id != nullptr && id->is_string()) {
      const auto found = called_.find(id->get<std::string>());
      if (found != called_.end()) author = found->second;
    }
    if (author.empty()) {
      fail(ErrorKind::invalid_request, where + ": a tool result without a preceding tool call",
           {.why = {}, .next = "send the assistant's message with the tool call first"});
    }
    check_name(author, where + ".name");
    result_.push_back(with_header(message, {.author = author,
                                            .recipient = "assistant",
                                            .channel = "commentary",
                                            .content_type = {},
                                            .text = text_of(message, where, "")}));
  }

  const Conversation& conversation_;
  std::vector<Message> result_;
  std::map<std::string, std::string, std::less<>> called_;  // tool_call_id to the function's full name
  std::string last_called_;
};

constexpr std::string_view constrain = "<|constrain|>";

void render_header(Script& script, const Message& message) {
  script.control("<|start|>");
  script.text(message.author);
  if (!message.recipient.empty() && message.recipient != "all") script.text(" to=" + message.recipient);
  if (!message.channel.empty()) {
    script.control("<|channel|>");
    script.text(message.channel);
  }
  if (message.content_type.starts_with(constrain)) {
    script.text(" ");
    script.control(constrain);
    script.text(std::string_view(message.content_type).substr(constrain.size()));
  } else if (!message.content_type.empty()) {
    script.text(" " + message.content_type);
  }
  script.control("<|message|>");
}

// Without its <|start|>.
std::string header_text(const Message& message) {
  Script script;
  render_header(script, message);
  return script.whole().substr(std::string_view("<|start|>").size());
}

bool is_assistant(const Message& message) {
  return message.author == "assistant" || message.author.starts_with("assistant:");
}

class HarmonyFormat : public ChatFormat {
 public:
  HarmonyFormat(const Tokenizer& tokenizer, ChatOptions options)
      : tokenizer_(tokenizer), options_(std::move(options)) {}

  std::string name() const override { return "harmony"; }

  using ChatFormat::render;
  Prompt render(const Conversation& conversation, std::size_t max_tokens) const override {
    const Rendering rendering = from_conversation(conversation, options_.clock());
    const Script script = harmony::render(rendering);
    const std::vector<TextSpan> whole = {{script.whole(), Origin::trusted}};
    auto tokens = tokenizer_.encode_within(
        options_.allow_control_tokens_in_user_text ? whole : script.spans(), max_tokens);
    Prompt prompt{.tokens = tokens ? *std::move(tokens) : std::vector<TokenId>{},
                  .text = script.whole(),
                  .is_too_long = !tokens};
    if (rendering.continues_reply) prompt.opening = header_text(rendering.messages.back());
    return prompt;
  }

  std::vector<TokenId> stop_tokens() const override { return harmony::stop_tokens(tokenizer_); }

  using ChatFormat::parser;
  std::unique_ptr<ReplyParser> parser(const Conversation& conversation, const Prompt& prompt) const override {
    ParserSetup setup{.conversation = &conversation, .opening = {}};
    if (prompt.opening) setup.opening = tokenizer_.encode_prompt(*prompt.opening);
    return make_parser(tokenizer_, setup);
  }

  ReplyShape shape(const Conversation& conversation, const Prompt& prompt) const override {
    ReplyShape shape{.kind = ReplyShape::Kind::channels};
    if (!prompt.opening) return shape;
    const Rendering rendering = from_conversation(conversation, options_.clock());
    shape.begun = begun_message(*prompt.opening, rendering.messages.back().text);
    return shape;
  }

 private:
  const Tokenizer& tokenizer_;
  ChatOptions options_;
};

}  // namespace

Rendering from_conversation(const Conversation& conversation, std::chrono::local_seconds now) {
  check_form(conversation);
  return {.system = system_of(conversation, now),
          .messages = Converter(conversation).convert(),
          .drop_earlier_analysis = flag(conversation.variables, "auto_drop_analysis", true),
          .opens_reply = conversation.add_generation_prompt && !conversation.continue_final_message,
          .continues_reply = conversation.continue_final_message};
}

void Script::control(std::string_view token) {
  add(token, Origin::trusted);
}

void Script::text(std::string_view words) {
  add(words, Origin::user);
}

void Script::add(std::string_view words, Origin origin) {
  if (words.empty()) return;
  pieces_.push_back({text_.size(), text_.size() + words.size(), origin});
  text_ += words;
}

std::vector<TextSpan> Script::spans() const {
  std::vector<TextSpan> spans;
  for (const Piece& piece : pieces_) {
    spans.push_back({std::string_view(text_).substr(piece.begin, piece.end - piece.begin), piece.origin});
  }
  return spans;
}

std::string system_text(const System& system) {
  std::vector<std::string> lines;
  if (system.identity) lines.push_back(*system.identity);
  if (system.knowledge_cutoff) lines.push_back("Knowledge cutoff: " + *system.knowledge_cutoff);
  if (system.date) lines.push_back("Current date: " + *system.date);
  std::vector<std::string> sections;
  if (!lines.empty()) sections.push_back(fmt::format("{}", fmt::join(lines, "\n")));
  if (system.effort) sections.push_back("Reasoning: " + *system.effort);
  if (!system.channels.empty()) {
    std::string channels = fmt::format("# Valid channels: {}. Channel must be included for every message.",
                                       fmt::join(system.channels, ", "));
    if (system.calls_functions) {
      channels += "\nCalls to these tools must go to the commentary channel: 'functions'.";
    }
    sections.push_back(std::move(channels));
  }
  return fmt::format("{}", fmt::join(sections, "\n\n"));
}

std::vector<Message> without_earlier_analysis(std::vector<Message> messages) {
  const auto is_final = [](const Message& message) {
    return is_assistant(message) && message.channel == "final";
  };
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_final).base();
  const auto kept = std::remove_if(messages.begin(), last, [](const Message& message) {
    return is_assistant(message) && message.channel == "analysis" && message.recipient.empty();
  });
  messages.erase(kept, last);
  return messages;
}

Script render(const Rendering& rendering) {
  Script script;
  if (rendering.system) {
    render_header(script,
                  {.author = "system", .recipient = {}, .channel = {}, .content_type = {}, .text = {}});
    script.text(system_text(*rendering.system));
    script.control("<|end|>");
  }
  std::vector<Message> messages = rendering.messages;
  // The reasoning of an answer that is to be continued is not obsolete.
  std::optional<Message> unfinished;
  if (rendering.continues_reply && !messages.empty()) {
    unfinished = std::move(messages.back());
    messages.pop_back();
  }
  if (rendering.drop_earlier_analysis) messages = without_earlier_analysis(std::move(messages));
  for (const Message& message : messages) {
    render_header(script, message);
    script.text(message.text);
    script.control(is_assistant(message) && !message.recipient.empty() ? "<|call|>" : "<|end|>");
  }
  if (unfinished) {
    render_header(script, *unfinished);
    script.text(unfinished->text);
  }
  if (rendering.opens_reply) {
    script.control("<|start|>");
    script.text("assistant");
  }
  return script;
}

std::unique_ptr<ChatFormat> make_format(const Tokenizer& tokenizer, const ChatOptions& options) {
  return std::make_unique<HarmonyFormat>(tokenizer, options);
}

}  // namespace inferno::harmony
