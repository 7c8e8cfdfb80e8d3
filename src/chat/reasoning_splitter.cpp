#include "chat/reasoning_splitter.h"

#include <utility>

namespace inferno {

ReasoningSplitter::ReasoningSplitter(ReasoningTags tags, bool begins_inside)
    : tags_(tags),
      begins_inside_(begins_inside),
      state_(tags.open.empty() ? State::content : State::before) {}

void ReasoningSplitter::take(char byte, Split& split) {
  switch (state_) {
    case State::before: take_before(byte, split); return;
    case State::inside: take_inside(byte, split); return;
    case State::behind:
      if (byte == '\n' || byte == '\r') return;
      state_ = State::content;
      split.content += byte;
      return;
    case State::content: split.content += byte; return;
  }
}

// Also where the prompt has opened the reasoning: some models write the tag once more.
void ReasoningSplitter::take_before(char byte, Split& split) {
  held_ += byte;
  const std::size_t first = held_.find_first_not_of(" \n\r\t");
  if (first == std::string::npos) return;
  const std::string_view begun = std::string_view(held_).substr(first);
  if (begun == tags_.open) {
    held_.clear();
    state_ = State::inside;
  } else if (!tags_.open.starts_with(begun)) {
    const std::string text = std::exchange(held_, {});
    state_ = begins_inside_ ? State::inside : State::content;
    for (const char held : text) take(held, split);
  }
}

// Held are line breaks, then the beginning of the closing tag.
void ReasoningSplitter::take_inside(char byte, Split& split) {
  held_ += byte;
  while (!held_.empty()) {
    const std::size_t first = held_.find_first_not_of("\n\r");
    if (first == std::string::npos) {
      if (!has_text_) held_.clear();  // line breaks behind the opening tag
      return;
    }
    const std::string_view begun = std::string_view(held_).substr(first);
    if (begun == tags_.close) {
      held_.clear();
      state_ = State::behind;
      return;
    }
    if (tags_.close.starts_with(begun)) return;
    split.reasoning.append(held_, 0, first + 1);
    held_.erase(0, first + 1);
    has_text_ = true;
  }
}

ReasoningSplitter::Split ReasoningSplitter::push(std::string_view text) {
  Split split;
  for (const char byte : text) take(byte, split);
  return split;
}

ReasoningSplitter::Split ReasoningSplitter::finish() {
  Split split;
  const bool reasons = state_ == State::inside || (state_ == State::before && begins_inside_);
  (reasons ? split.reasoning : split.content) = std::exchange(held_, {});
  return split;
}

}  // namespace inferno
