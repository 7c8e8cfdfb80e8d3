// Bytes from a terminal to keys. Pure: no terminal is needed to test it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

enum class KeyKind {
  text,   // one or more characters to insert as they are
  paste,  // the same between the marks of a bracketed paste; line breaks are '\n'
  enter,
  new_line,  // Alt-Enter: a line break that does not send
  tab,
  backspace,
  erase,  // Delete
  left,
  right,
  word_left,
  word_right,
  up,
  down,
  home,
  end,
  escape,
  control,    // Ctrl with the letter in `text`: "a" to "z"
  erase_word  // Alt-Backspace; Ctrl-W is a control key
};

struct Key {
  KeyKind kind = KeyKind::text;
  std::string text;
  friend bool operator==(const Key&, const Key&) = default;
};

// Keeps what is not yet decided between calls: half a character, half an escape sequence, an open paste.
class KeyDecoder {
 public:
  std::vector<Key> push(std::string_view bytes);
  // True when the bytes so far could be a key or the beginning of a longer one: after a short silence, call
  // flush().
  bool is_waiting() const { return !held_.empty() && !pasting_; }
  // No more bytes came: a lone ESC was the escape key.
  std::vector<Key> flush();

 private:
  // Bytes of `held_` that one key took; 0 when more are needed.
  std::size_t take_key(std::vector<Key>& keys);
  std::size_t take_escape(std::vector<Key>& keys);
  std::size_t take_text(std::vector<Key>& keys);
  std::size_t take_paste(std::vector<Key>& keys);

  std::string held_;
  std::string pasted_;
  bool pasting_ = false;
};

// What was pasted or typed, fit for a prompt: line breaks as '\n', no other control characters than tabs,
// U+FFFD for what is not UTF-8.
std::string clean_input(std::string_view text);

}  // namespace inferno::terminal
