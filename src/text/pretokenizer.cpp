#include "text/pretokenizer.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/characters.h"

namespace inferno {
namespace {

bool is_of(CharacterKind kind, char32_t code) {
  switch (kind) {
    case CharacterKind::numeric: return is_numeric(code);
    case CharacterKind::punctuation: return is_punctuation(code);
    case CharacterKind::white_space: return is_white_space(code);
  }
  return false;
}

// Receives the parts of a text in order, each marked as a match or not, and emits pieces according to the
// behaviour.
template <typename Emit>
class Splitter {
 public:
  Splitter(SplitBehavior behavior, bool invert, Emit emit)
      : behavior_(behavior), invert_(invert), emit_(emit) {}

  void add(std::size_t begin, std::size_t end, bool is_match) {
    if (begin == end) return;
    const bool match = is_match != invert_;
    switch (behavior_) {
      case SplitBehavior::isolated: emit_(begin, end); return;
      case SplitBehavior::removed:
        if (!match) emit_(begin, end);
        return;
      case SplitBehavior::contiguous: return extend_if(match == held_match_, begin, end, match);
      case SplitBehavior::merged_with_previous: return extend_if(match && !held_match_, begin, end, match);
      case SplitBehavior::merged_with_next: return extend_if(!match && held_match_, begin, end, match);
    }
  }

  void finish() {
    if (held_begin_ < held_end_) emit_(held_begin_, held_end_);
  }

 private:
  void extend_if(bool joins, std::size_t begin, std::size_t end, bool match) {
    if (!joins || held_begin_ == held_end_) {
      finish();
      held_begin_ = begin;
    }
    held_end_ = end;
    held_match_ = match;
  }

  SplitBehavior behavior_;
  bool invert_;
  Emit emit_;
  std::size_t held_begin_ = 0;
  std::size_t held_end_ = 0;
  bool held_match_ = false;
};

}  // namespace

// One text passing through the steps. A step that changes the text owns the new text while it calls the later
// steps.
class PreTokenizerRun {
 public:
  PreTokenizerRun(const PreTokenizer& owner, RegexScratch& scratch, PieceSink& sink)
      : owner_(owner), scratch_(scratch), sink_(sink) {}

  void run(Piece piece, std::size_t step) {
    if (piece.text.empty() || sink_.is_full()) return;
    if (step == owner_.steps_.size()) return deliver(piece.text);
    std::visit([&](const auto& kind) { apply(kind, piece, step); }, owner_.steps_[step]);
  }

 private:
  void deliver(std::string_view piece) {
    if (owner_.read_bytes_ && byte_alphabet::read(bytes_, piece)) piece = bytes_;
    sink_.take(piece);
  }

  auto splitter(SplitBehavior behavior, bool invert, Piece piece, std::size_t step) {
    return Splitter(behavior, invert, [this, piece, step](std::size_t begin, std::size_t end) {
      run({.text = piece.text.substr(begin, end - begin), .at_start = piece.at_start && begin == 0},
          step + 1);
    });
  }

  void apply(const pretokenize::ByPattern& split, Piece piece, std::size_t step) {
    auto pieces = splitter(split.behavior, split.invert, piece, step);
    RegexScan scan(*split.pattern, piece.text, scratch_);
    std::size_t done = 0;
    while (const auto match = sink_.is_full() ? std::nullopt : scan.next()) {
      pieces.add(done, match->begin, false);
      pieces.add(match->begin, match->end, true);
      done = match->end;
    }
    pieces.add(done, piece.text.size(), false);
    pieces.finish();
  }

  void apply(const pretokenize::ByText& split, Piece piece, std::size_t step) {
    auto pieces = splitter(split.behavior, split.invert, piece, step);
    std::size_t done = 0;
    std::size_t at = piece.text.find(split.text);
    while (at != std::string_view::npos && !sink_.is_full()) {
      pieces.add(done, at, false);
      done = at + split.text.size();
      pieces.add(at, done, true);
      at = piece.text.find(split.text, done);
    }
    pieces.add(done, piece.text.size(), false);
    pieces.finish();
  }

  void apply(const pretokenize::ByCharacter& split, Piece piece, std::size_t step) {
    auto pieces = splitter(split.behavior, false, piece, step);
    std::size_t done = 0;
    for (std::size_t at = 0; at < piece.text.size() && !sink_.is_full();) {
      const utf8::Character character = utf8::decode(piece.text, at);
      const std::size_t next = at + static_cast<std::size_t>(character.length);
      if (is_of(split.kind, character.code)) {
        pieces.add(done, at, false);
        pieces.add(at, next, true);
        done = next;
      }
      at = next;
    }
    pieces.add(done, piece.text.size(), false);
    pieces.finish();
  }

  void apply(const pretokenize::AddPrefixSpace&, Piece piece, std::size_t step) {
    if (piece.text.starts_with(' ')) return run(piece, step + 1);
    const std::string text = ' ' + std::string(piece.text);
    run({.text = text, .at_start = piece.at_start}, step + 1);
  }

  void apply(const pretokenize::WriteBytes&, Piece piece, std::size_t step) {
    const std::string text = byte_alphabet::write(piece.text);
    run({.text = text, .at_start = piece.at_start}, step + 1);
  }

  void apply(const pretokenize::Metaspace& meta, Piece piece, std::size_t step) {
    std::string text;
    const bool prepends =
        meta.prepend == PrependScheme::always || (meta.prepend == PrependScheme::first && piece.at_start);
    if (prepends && !piece.text.starts_with(' ') && !piece.text.starts_with(meta.replacement)) {
      text = meta.replacement;
    }
    for (const char c : piece.text) {
      if (c == ' ') {
        text += meta.replacement;
      } else {
        text += c;
      }
    }
    const Piece changed{.text = text, .at_start = piece.at_start};
    if (!meta.split) return run(changed, step + 1);
    apply(pretokenize::ByText{.text = meta.replacement, .behavior = SplitBehavior::merged_with_next}, changed,
          step);
  }

  const PreTokenizer& owner_;
  RegexScratch& scratch_;
  PieceSink& sink_;
  std::string bytes_;
};

bool PreTokenizer::drops_text() const {
  const auto drops = [](const auto& step) {
    if constexpr (requires { step.behavior; }) return step.behavior == SplitBehavior::removed;
    return false;
  };
  return std::ranges::any_of(steps_, [&](const PreTokenizerStep& step) { return std::visit(drops, step); });
}

void PreTokenizer::run(Piece piece, RegexScratch& scratch, PieceSink& sink) const {
  PreTokenizerRun(*this, scratch, sink).run(piece, 0);
}

}  // namespace inferno
