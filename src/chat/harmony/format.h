// Harmony, the conversation format of gpt-oss: messages with a header (author, recipient, channel, content
// type) between control tokens. This header writes it; parser.h reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"

namespace inferno::harmony {

struct Message {
  std::string author;        // "user", "assistant", "user:ann", "functions.get_weather", …
  std::string recipient;     // empty: everyone
  std::string channel;       // empty: none
  std::string content_type;  // "json", "<|constrain|>json"; empty: none
  std::string text;
};

// An absent member omits its line or section.
struct System {
  std::optional<std::string> identity = "You are ChatGPT, a large language model trained by OpenAI.";
  std::optional<std::string> knowledge_cutoff = "2024-06";
  std::optional<std::string> date;
  std::optional<std::string> effort = "medium";
  std::vector<std::string> channels = {"analysis", "commentary", "final"};
  bool calls_functions = false;
};

struct Rendering {
  std::optional<System> system = System{};
  std::vector<Message> messages;
  bool drop_earlier_analysis = true;
  bool opens_reply = true;       // end with <|start|>assistant
  bool continues_reply = false;  // end inside the last message
};

// A rendered text in which only the control tokens written by the renderer are trusted.
class Script {
 public:
  void control(std::string_view token);
  void text(std::string_view words);
  const std::string& whole() const { return text_; }
  std::vector<TextSpan> spans() const;

 private:
  struct Piece {
    std::size_t begin, end;
    Origin origin;
  };
  void add(std::string_view words, Origin origin);
  std::string text_;
  std::vector<Piece> pieces_;
};

std::string system_text(const System& system);
Script render(const Rendering& rendering);

// Drops every analysis message before the last final one: reasoning is obsolete once its answer is given,
// while later reasoning belongs to tool calls that are still in progress.
std::vector<Message> without_earlier_analysis(std::vector<Message> messages);

// From OpenAI's messages and tools. These `variables` are used: model_identity, knowledge_cutoff,
// current_date (null omits a line), reasoning_effort, valid_channels, system_message (false: no system
// message), auto_drop_analysis, response_format. Error{invalid_request} naming the field that is wrong.
Rendering from_conversation(const Conversation& conversation, std::chrono::local_seconds now);

// The tokenizer must outlive the result.
std::unique_ptr<ChatFormat> make_format(const Tokenizer& tokenizer, const ChatOptions& options);

}  // namespace inferno::harmony
