#include "cli/terminal/input/key.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"

namespace inferno::terminal {
namespace {

constexpr char escape = '\x1b';
constexpr std::string_view paste_begin = "\x1b[200~", paste_end = "\x1b[201~";
constexpr std::size_t max_sequence = 32;  // bytes; longer sequences are not keys and are cut off

struct Sequence {
  std::string_view bytes;  // after ESC
  KeyKind kind;
};

// What common terminals send, including xterm's modifiers (1;3 Alt, 1;5 Ctrl).
constexpr std::array sequences = {
    Sequence{"[A", KeyKind::up},
    Sequence{"[B", KeyKind::down},
    Sequence{"[C", KeyKind::right},
    Sequence{"[D", KeyKind::left},
    Sequence{"OA", KeyKind::up},
    Sequence{"OB", KeyKind::down},
    Sequence{"OC", KeyKind::right},
    Sequence{"OD", KeyKind::left},
    Sequence{"[H", KeyKind::home},
    Sequence{"[F", KeyKind::end},
    Sequence{"OH", KeyKind::home},
    Sequence{"OF", KeyKind::end},
    Sequence{"[1~", KeyKind::home},
    Sequence{"[4~", KeyKind::end},
    Sequence{"[7~", KeyKind::home},
    Sequence{"[8~", KeyKind::end},
    Sequence{"[3~", KeyKind::erase},
    Sequence{"[1;5C", KeyKind::word_right},
    Sequence{"[1;3C", KeyKind::word_right},
    Sequence{"[1;5D", KeyKind::word_left},
    Sequence{"[1;3D", KeyKind::word_left},
    Sequence{"b", KeyKind::word_left},
    Sequence{"f", KeyKind::word_right},
    Sequence{"\r", KeyKind::new_line},
    Sequence{"\n", KeyKind::new_line},
    Sequence{"\x7f", KeyKind::erase_word},
    Sequence{"\b", KeyKind::erase_word},
};

// Length of the escape sequence at the start of `bytes`; nullopt if it is incomplete.
std::optional<std::size_t> sequence_length(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  if (bytes[1] == 'O') return bytes.size() < 3 ? std::nullopt : std::optional<std::size_t>(3);
  if (bytes[1] != '[') return 2;
  for (std::size_t at = 2; at < bytes.size(); ++at) {
    if (bytes[at] >= '@' && bytes[at] <= '~') return at + 1;
    if (at + 1 >= max_sequence) return at + 1;
  }
  return std::nullopt;
}

std::optional<Key> control_key(char byte) {
  switch (byte) {
    case '\r':
    case '\n': return Key{KeyKind::enter, {}};
    case '\t': return Key{KeyKind::tab, {}};
    case '\b':
    case '\x7f': return Key{KeyKind::backspace, {}};
    default: break;
  }
  if (byte >= 1 && byte <= 26)
    return Key{KeyKind::control, std::string(1, static_cast<char>('a' + byte - 1))};
  return std::nullopt;
}

bool is_control(char byte) {
  return static_cast<unsigned char>(byte) < 0x20 || byte == '\x7f';
}

}  // namespace

std::vector<Key> KeyDecoder::push(std::string_view bytes) {
  held_ += bytes;
  std::vector<Key> keys;
  while (!held_.empty()) {
    const std::size_t taken = pasting_ ? take_paste(keys) : take_key(keys);
    if (taken == 0) break;
    held_.erase(0, taken);
  }
  return keys;
}

std::vector<Key> KeyDecoder::flush() {
  std::vector<Key> keys;
  if (pasting_ || held_.empty()) return keys;
  if (held_ == std::string_view("\x1b")) {
    keys.push_back({KeyKind::escape, {}});
  } else if (held_.front() != escape) {
    keys.push_back({KeyKind::text, clean_input(held_)});
  }
  held_.clear();
  return keys;
}

std::size_t KeyDecoder::take_key(std::vector<Key>& keys) {
  if (held_.front() == escape) return take_escape(keys);
  if (!is_control(held_.front())) return take_text(keys);
  if (auto key = control_key(held_.front())) keys.push_back(*std::move(key));
  return 1;
}

std::size_t KeyDecoder::take_escape(std::vector<Key>& keys) {
  const auto length = sequence_length(held_);
  if (!length) return 0;
  const std::string_view sequence = std::string_view(held_).substr(0, *length);
  if (sequence == paste_begin) {
    pasting_ = true;
    return *length;
  }
  const auto found = std::find_if(sequences.begin(), sequences.end(),
                                  [&](const Sequence& known) { return known.bytes == sequence.substr(1); });
  if (found != sequences.end()) {
    keys.push_back({found->kind, {}});
    return *length;
  }
  // Unknown sequences are ignored, and so is Alt with a key that has no meaning; ESC before any other byte is
  // the escape key.
  const bool is_alt_key = sequence[1] > ' ' && sequence[1] < '\x7f';
  if (is_alt_key) return *length;
  keys.push_back({KeyKind::escape, {}});
  return 1;
}

std::size_t KeyDecoder::take_text(std::vector<Key>& keys) {
  std::size_t end = 0;
  while (end < held_.size() && !is_control(held_[end])) ++end;
  const bool at_end = end == held_.size();
  std::string text = held_.substr(0, end);
  std::string rest = text;
  std::string decided = at_end ? utf8::take_decided(rest, utf8::Replacement::per_character)
                               : utf8::take_all(rest, utf8::Replacement::per_character);
  const std::size_t taken = at_end ? end - rest.size() : end;
  if (!decided.empty()) keys.push_back({KeyKind::text, clean_input(decided)});
  return taken;
}

std::size_t KeyDecoder::take_paste(std::vector<Key>& keys) {
  const std::size_t found = held_.find(paste_end);
  if (found != std::string::npos) {
    pasted_ += held_.substr(0, found);
    keys.push_back({KeyKind::paste, clean_input(pasted_)});
    pasted_.clear();
    pasting_ = false;
    return found + paste_end.size();
  }
  // The last bytes may be the first part of the end mark.
  const std::size_t keep = std::min(held_.size(), paste_end.size() - 1);
  const std::size_t taken = held_.size() - keep;
  pasted_ += held_.substr(0, taken);
  return taken;
}

std::string clean_input(std::string_view text) {
  std::string held(text);
  const std::string valid = utf8::take_all(held, utf8::Replacement::per_character);
  std::string clean;
  for (std::size_t at = 0; at < valid.size();) {
    const utf8::Character character = utf8::decode(valid, at);
    const std::string_view bytes =
        std::string_view(valid).substr(at, static_cast<std::size_t>(character.length));
    at += bytes.size();
    if (character.code == '\r') {
      if (at >= valid.size() || valid[at] != '\n') clean += '\n';
    } else if (character.code == '\n' || character.code == '\t' ||
               (character.code >= 0x20 && (character.code < 0x7F || character.code > 0x9F))) {
      clean += bytes;
    }
  }
  return clean;
}

}  // namespace inferno::terminal
