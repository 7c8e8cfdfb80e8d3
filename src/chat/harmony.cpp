#include "chat/harmony.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/harmony_parser.h"

namespace inferno {
namespace {

struct KnownToken {
  std::string_view text;
  TokenId id;
};
// Enough of o200k_harmony to tell it from every other vocabulary with tokens of these names.
constexpr KnownToken known_tokens[] = {
    {"<|return|>", 200002}, {"<|constrain|>", 200003}, {"<|channel|>", 200005}, {"<|start|>", 200006},
    {"<|end|>", 200007},    {"<|message|>", 200008},   {"<|call|>", 200012}};

}  // namespace

bool is_o200k_harmony(const Tokenizer& tokenizer) {
  return std::all_of(std::begin(known_tokens), std::end(known_tokens),
                     [&](const KnownToken& known) { return tokenizer.special(known.text) == known.id; });
}

}  // namespace inferno

namespace inferno::harmony {
namespace {

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

bool is_assistant(const Message& message) {
  return message.author == "assistant" || message.author.starts_with("assistant:");
}

class HarmonyFormat : public ChatFormat {
 public:
  HarmonyFormat(const Tokenizer& tokenizer, ChatOptions options)
      : tokenizer_(tokenizer), options_(std::move(options)) {}

  std::string name() const override { return "harmony"; }

  Prompt render(const Conversation& conversation) const override {
    const Script script = harmony::render(from_conversation(conversation, options_.clock()));
    Prompt prompt{.tokens = {}, .text = script.whole()};
    prompt.tokens = options_.user_text_may_hold_control_tokens ? tokenizer_.encode_prompt(prompt.text)
                                                               : tokenizer_.encode_spans(script.spans());
    return prompt;
  }

  std::vector<TokenId> stop_tokens() const override { return harmony::stop_tokens(tokenizer_); }

  std::unique_ptr<ReplyParser> parser(const Conversation& conversation) const override {
    return make_parser(tokenizer_, {.conversation = &conversation, .opening = {}});
  }

 private:
  const Tokenizer& tokenizer_;
  ChatOptions options_;
};

}  // namespace

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
  const auto messages =
      rendering.drop_earlier_analysis ? without_earlier_analysis(rendering.messages) : rendering.messages;
  for (const Message& message : messages) {
    render_header(script, message);
    script.text(message.text);
    script.control(is_assistant(message) && !message.recipient.empty() ? "<|call|>" : "<|end|>");
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
