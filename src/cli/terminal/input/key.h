// Decodes bytes from a terminal into keys. Needs no terminal, so tests can drive it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

enum class KeyKind {
  text,   // one or more characters to insert
  paste,  // the text of a bracketed paste; line breaks are '\n'
  enter,
  new_line,  // Alt-Enter: inserts a line break instead of submitting
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
  control,    // Ctrl and the letter in `text`: "a" to "z"
  erase_word  // Alt-Backspace; Ctrl-W is a control key
};

struct Key {
  KeyKind kind = KeyKind::text;
  std::string text;
  friend bool operator==(const Key&, const Key&) = default;
};

// Keeps incomplete input between calls: half a character, half an escape sequence, an open paste.
class KeyDecoder {
 public:
  std::vector<Key> push(std::string_view bytes);
  // Whether the bytes so far are a key or the start of a longer sequence; after a short pause call flush().
  bool is_waiting() const { return !held_.empty() && !pasting_; }
  // Decodes what is held, assuming that no more bytes follow: a lone ESC is the escape key.
  std::vector<Key> flush();

 private:
  // Each returns how many bytes of `held_` it consumed; 0 if it needs more.
  std::size_t take_key(std::vector<Key>& keys);
  std::size_t take_escape(std::vector<Key>& keys);
  std::size_t take_text(std::vector<Key>& keys);
  std::size_t take_paste(std::vector<Key>& keys);

  std::string held_;
  std::string pasted_;
  bool pasting_ = false;
};

// Makes pasted or typed text safe for a prompt: line breaks become '\n', control characters except tabs are
// removed, and bytes that are not UTF-8 become U+FFFD.
std::string clean_input(std::string_view text);

}  // namespace inferno::terminal
