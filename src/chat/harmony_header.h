// The header of a Harmony message while it comes in: author, recipient, channel and content type, in the
// orders that gpt-oss writes them, and what to make of one that is none.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace inferno::harmony {

enum class Destination { content, reasoning, tool_call };

struct Address {
  Destination destination = Destination::content;
  std::string function;  // for tool_call, without "functions."
  std::string stray;     // words that have no place in a header, and hence are text
  std::string warning;   // empty when the header is as it should be
};

// What a header that never ended left behind.
struct Remains {
  Destination destination = Destination::content;
  std::string text;
  std::string warning;
};

using KnowsFunction = std::function<bool(std::string_view)>;

class Header {
 public:
  enum class Begin {
    after_author,   // the prompt ended with <|start|>assistant
    after_start,    // <|start|> was read
    without_start,  // a message ended, and what follows is no <|start|>
  };
  explicit Header(Begin begin) : begin_(begin) {}

  void byte(char value);
  // A second one replaces the first, of which only a name is lost; false when it would lose text.
  bool channel();
  void constrain() { constrained_ = true; }

  bool is_empty() const { return before_.empty() && after_.empty() && type_.empty() && !has_channel_; }
  // False as soon as no header can begin like this: then the bytes are text. Asked after every byte, so that
  // the answer does not depend on how the text was cut into tokens.
  bool is_possible(const KnowsFunction& knows) const;

  // At <|message|>.
  Address address(const KnowsFunction& knows) const;
  // At the end of a message or a reply, or when the header is no longer possible.
  Remains remains() const;

 private:
  Begin begin_;
  std::string before_;  // up to <|channel|>
  std::string after_;   // from there on
  std::string type_;    // from <|constrain|> on
  bool has_channel_ = false;
  bool constrained_ = false;
};

}  // namespace inferno::harmony
