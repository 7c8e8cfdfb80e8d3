// Which tokens the text of a reply came from. Parsers hold text back, drop markup and replace invalid bytes;
// this follows the bytes of each token to the content that was returned for them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "engine/request.h"

namespace inferno {

// A token of the content. A token that a stop string cuts, or that is partly reasoning, has only the bytes
// that are content.
struct ContentToken {
  Sampled sampled;
  std::string bytes;
};

class TokenTrace {
 public:
  // Tokens are known by their index in the answer.
  void push(std::size_t token, std::string_view bytes);
  // `parts` were returned for the bytes pushed so far; the last `held` of these bytes are not decided yet.
  void settle(std::span<const ReplyPart> parts, std::size_t held);
  // This many further bytes of the content were shown.
  void show(std::size_t bytes);

  // Appends the tokens of the shown content of which no text is outstanding. `tokens` are the answer's.
  void add_complete(std::vector<ContentToken>& to, std::span<const Sampled> tokens);
  // Appends all tokens of the shown content.
  void add_rest(std::vector<ContentToken>& to, std::span<const Sampled> tokens);

  int reasoning_tokens() const { return reasoning_tokens_; }

 private:
  // Bytes, each with the token it came from.
  struct Traced {
    std::string bytes;
    std::vector<std::size_t> tokens;

    void append(const Traced& other, std::size_t count);
    void erase_front(std::size_t count);
  };

  // Where `text`, which ends before `end`, came from. Moves `end` to where it begins.
  Traced find(std::string_view text, std::size_t& end) const;
  Traced approximate(std::string_view text, std::size_t& end) const;
  void count_reasoning(const Traced& text);

  Traced pending_;  // pushed and not decided
  Traced content_;  // decided and not shown
  Traced shown_;    // shown and not yet appended to the answer
  std::size_t last_token_ = 0;
  std::size_t counted_ = 0;  // tokens before this index are in reasoning_tokens_ or have no reasoning
  int reasoning_tokens_ = 0;
};

}  // namespace inferno
