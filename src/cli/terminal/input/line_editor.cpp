#include "cli/terminal/input/line_editor.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "text/characters.h"

namespace inferno::terminal {
namespace {

constexpr std::string_view quotes = "\"\"\"";

bool is_word(std::string_view text, std::size_t at) {
  return is_word_part(utf8::decode(text, at).code);
}

}  // namespace

bool is_unfinished(std::string_view text) {
  // The argument of a command may have several lines, too: /system """...
  if (text.starts_with('/')) {
    const std::size_t space = std::min(text.find(' '), text.size());
    text.remove_prefix(std::min(text.find_first_not_of(' ', space), text.size()));
  }
  return text.starts_with(quotes) && text.find(quotes, quotes.size()) == std::string_view::npos;
}

std::string without_quotes(std::string_view text) {
  if (!text.starts_with(quotes)) return std::string(text);
  std::string_view inside = text.substr(quotes.size());
  const std::size_t end = inside.find(quotes);
  // Text after the closing quotes is kept: nothing typed is lost.
  std::string out(inside.substr(0, end));
  if (end != std::string_view::npos) out += inside.substr(end + quotes.size());
  if (out.starts_with('\n')) out.erase(0, 1);
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

LineEditor::LineEditor(std::vector<std::string> history, Completer completer)
    : drafts_(std::move(history)), completer_(std::move(completer)) {
  draft_ = drafts_.size();
  drafts_.emplace_back();
}

Outcome LineEditor::apply(const Key& key) {
  if (search_) {
    if (const auto outcome = apply_to_search(key)) return *outcome;
  }
  if (key.kind == KeyKind::tab) return complete();
  may_list_ = false;
  switch (key.kind) {
    case KeyKind::text:
    case KeyKind::paste: insert(key.text); break;
    case KeyKind::enter: return enter();
    case KeyKind::new_line: insert("\n"); break;
    case KeyKind::tab: break;  // handled above
    case KeyKind::backspace: erase(previous_character(text_, cursor_), cursor_); break;
    case KeyKind::erase: erase(cursor_, next_character(text_, cursor_)); break;
    case KeyKind::left: cursor_ = previous_character(text_, cursor_); break;
    case KeyKind::right: cursor_ = next_character(text_, cursor_); break;
    case KeyKind::word_left: cursor_ = word_left(); break;
    case KeyKind::word_right: cursor_ = word_right(); break;
    case KeyKind::up: move_line(/*up=*/true); break;
    case KeyKind::down: move_line(/*up=*/false); break;
    case KeyKind::home: cursor_ = line_begin(); break;
    case KeyKind::end: cursor_ = line_end(); break;
    case KeyKind::escape: break;
    case KeyKind::erase_word: kill(word_left(), cursor_); break;
    case KeyKind::control: return apply_control(key.text.front());
  }
  return Outcome::editing;
}

Outcome LineEditor::apply_control(char letter) {
  switch (letter) {
    case 'a': cursor_ = line_begin(); break;
    case 'b': cursor_ = previous_character(text_, cursor_); break;
    case 'c': return Outcome::interrupted;
    case 'd':
      if (text_.empty()) return Outcome::left;
      erase(cursor_, next_character(text_, cursor_));
      break;
    case 'e': cursor_ = line_end(); break;
    case 'f': cursor_ = next_character(text_, cursor_); break;
    // At the end of a line Ctrl-K deletes the line break, as in Emacs.
    case 'k': kill(cursor_, cursor_ == line_end() ? next_character(text_, cursor_) : line_end()); break;
    case 'l': return Outcome::clear_screen;
    case 'n': move_line(/*up=*/false); break;
    case 'p': move_line(/*up=*/true); break;
    case 'r': begin_search(); break;
    case 'u': kill(line_begin(), cursor_); break;
    case 'w': {
      std::size_t begin = cursor_;
      const auto is_space = [&](std::size_t at) { return is_white_space(utf8::decode(text_, at).code); };
      while (begin > 0 && is_space(previous_character(text_, begin)))
        begin = previous_character(text_, begin);
      while (begin > 0 && !is_space(previous_character(text_, begin)))
        begin = previous_character(text_, begin);
      kill(begin, cursor_);
      break;
    }
    case 'y': insert(killed_); break;
    case 'z': return Outcome::suspend;
    default: break;
  }
  return Outcome::editing;
}

Outcome LineEditor::enter() {
  if (!is_unfinished(text_)) return Outcome::submitted;
  insert("\n");
  return Outcome::editing;
}

std::optional<std::string> LineEditor::search_prompt() const {
  return search_ ? std::optional(search_->found.prompt()) : std::nullopt;
}

void LineEditor::begin_search() {
  drafts_[draft_] = text_;
  // The last draft is the new line itself.
  const std::span<const std::string> history(drafts_.data(), drafts_.size() - 1);
  search_.emplace(Search{.found = HistorySearch(history), .text = text_, .cursor = cursor_, .draft = draft_});
}

std::optional<Outcome> LineEditor::apply_to_search(const Key& key) {
  HistorySearch& found = search_->found;
  if (key.kind == KeyKind::text) {
    found.add(key.text);
  } else if (key.kind == KeyKind::backspace) {
    found.remove_last();
  } else if (key == Key{KeyKind::control, "r"}) {
    found.older();
  } else if (key == Key{KeyKind::control, "g"}) {
    text_ = search_->text;
    cursor_ = search_->cursor;
    draft_ = search_->draft;
    search_.reset();
    return Outcome::editing;
  } else {
    search_.reset();
    return key.kind == KeyKind::escape ? std::optional(Outcome::editing) : std::nullopt;
  }
  show_match();
  return Outcome::editing;
}

void LineEditor::show_match() {
  const auto& match = search_->found.match();
  text_ = match ? drafts_[match->entry] : search_->text;
  cursor_ = match ? match->at : search_->cursor;
  draft_ = match ? match->entry : search_->draft;
}

Outcome LineEditor::complete() {
  const auto completion = completer_ ? completer_(std::string_view(text_).substr(0, cursor_)) : std::nullopt;
  if (!completion) {
    insert("\t");
    return Outcome::editing;
  }
  const bool is_second = may_list_;
  may_list_ = true;
  candidates_ = completion->candidates;
  if (candidates_.empty()) return Outcome::editing;
  std::string common = candidates_.front().text;
  for (const Candidate& candidate : candidates_) {
    const auto [end, other] = std::ranges::mismatch(common, candidate.text);
    common.erase(static_cast<std::size_t>(end - common.begin()));
  }
  while (!utf8::is_valid(common)) common.pop_back();
  if (candidates_.size() == 1) common += candidates_.front().ending;
  const std::string before = text_.substr(completion->begin, cursor_ - completion->begin);
  // A common beginning that is shorter than what was typed, as "/" for "/X", would delete letters.
  if (common != before && common.size() >= before.size()) {
    erase(completion->begin, cursor_);
    insert(common);
    return Outcome::editing;
  }
  return is_second && candidates_.size() > 1 ? Outcome::list : Outcome::editing;
}

void LineEditor::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineEditor::erase(std::size_t begin, std::size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineEditor::kill(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  killed_ = text_.substr(begin, end - begin);
  erase(begin, end);
}

// Moves within a text of several lines first, then through the history.
void LineEditor::move_line(bool up) {
  const std::size_t begin = line_begin(), end = line_end();
  const int column = columns(std::string_view(text_).substr(begin, cursor_ - begin));
  if (up ? begin == 0 : end == text_.size()) {
    if (up ? draft_ > 0 : draft_ + 1 < drafts_.size()) recall(up ? draft_ - 1 : draft_ + 1);
    return;
  }
  cursor_ = up ? begin - 1 : end + 1;
  std::size_t at = line_begin();
  const std::size_t stop = line_end();
  for (int passed = 0; at < stop; at = next_character(text_, at)) {
    passed += character_columns(std::string_view(text_).substr(at, next_character(text_, at) - at));
    if (passed > column) break;
  }
  cursor_ = std::min(at, stop);
}

void LineEditor::recall(std::size_t entry) {
  drafts_[draft_] = text_;
  draft_ = entry;
  text_ = drafts_[draft_];
  cursor_ = text_.size();
}

std::size_t LineEditor::line_begin() const {
  const std::size_t found = cursor_ == 0 ? std::string::npos : text_.rfind('\n', cursor_ - 1);
  return found == std::string::npos ? 0 : found + 1;
}

std::size_t LineEditor::line_end() const {
  const std::size_t found = text_.find('\n', cursor_);
  return found == std::string::npos ? text_.size() : found;
}

std::size_t LineEditor::word_left() const {
  std::size_t at = cursor_;
  while (at > 0 && !is_word(text_, previous_character(text_, at))) at = previous_character(text_, at);
  while (at > 0 && is_word(text_, previous_character(text_, at))) at = previous_character(text_, at);
  return at;
}

std::size_t LineEditor::word_right() const {
  std::size_t at = cursor_;
  while (at < text_.size() && !is_word(text_, at)) at = next_character(text_, at);
  while (at < text_.size() && is_word(text_, at)) at = next_character(text_, at);
  return at;
}

}  // namespace inferno::terminal
