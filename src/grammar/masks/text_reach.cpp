#include "grammar/masks/text_reach.h"

#include <algorithm>
#include <array>
#include <vector>

namespace inferno::grammar {
namespace {

constexpr std::uint32_t max_characters = 32;
constexpr std::size_t max_places = 400;  // more cost as much as trying the tokens

// Nodes: 1, 2 and 3 bytes of a character are missing (1, 3, 7), or the next byte is restricted: after E0 (2),
// E2 (4), ED (5), F0 (6), F4 (8) and E2 80 (9), where the line separators are left out.
constexpr std::array<CharacterStep, 24> plain = {{
    {0x20, 0x21, 0, 0}, {0x23, 0x5B, 0, 0}, {0x5D, 0x7E, 0, 0}, {0xC2, 0xDF, 0, 1}, {0xE0, 0xE0, 0, 2},
    {0xE1, 0xE1, 0, 3}, {0xE2, 0xE2, 0, 4}, {0xE3, 0xEC, 0, 3}, {0xED, 0xED, 0, 5}, {0xEE, 0xEF, 0, 3},
    {0xF0, 0xF0, 0, 6}, {0xF1, 0xF3, 0, 7}, {0xF4, 0xF4, 0, 8}, {0x80, 0xBF, 1, 0}, {0xA0, 0xBF, 2, 1},
    {0x80, 0xBF, 3, 1}, {0x80, 0x80, 4, 9}, {0x81, 0xBF, 4, 1}, {0x80, 0x9F, 5, 1}, {0x90, 0xBF, 6, 3},
    {0x80, 0xBF, 7, 3}, {0x80, 0x8F, 8, 3}, {0x80, 0xA7, 9, 0}, {0xAA, 0xBF, 9, 0},
}};
constexpr std::array<CharacterStep, 3> word = {{{'0', '9', 0, 0}, {'A', 'Z', 0, 0}, {'a', 'z', 0, 0}}};

struct Place {
  Explorer::Id id = 0;
  std::uint8_t node = 0;
  bool operator==(const Place&) const = default;
};

// How many characters of up to four bytes the counter of a frame allows, if each byte counted.
std::uint32_t counter_reach(const Explorer& explorer, std::uint32_t index) {
  const Machine::RuleInfo& rule = explorer.rule_of(index);
  if (rule.counts.is_free()) return Counts::unbounded;
  const std::uint32_t count = explorer.frame(index).count;
  if (count < rule.counts.min) return 0;
  if (rule.counts.max == Counts::unbounded) return Counts::unbounded;
  const std::uint64_t taken = std::uint64_t{count} + rule.max_need;
  return taken < rule.counts.max ? static_cast<std::uint32_t>(rule.counts.max - taken) / 4 : 0;
}

// Places in the order of the number of characters before them.
class Search {
 public:
  Search(Explorer& explorer, CharacterKind kind) : explorer_(explorer), kind_(kind) {}

  std::uint32_t run(Explorer::Id id) {
    next_.push_back({id, 0});
    for (std::uint32_t taken = 0; taken < max_characters; ++taken) {
      now_.swap(next_);
      next_.clear();
      for (std::size_t i = 0; i < now_.size(); ++i)
        if (!follow(now_[i])) return taken;
      if (next_.empty()) return Counts::unbounded;
    }
    return max_characters;
  }

 private:
  // False if a byte leads nowhere, or there are too many places.
  bool follow(Place place) {
    if (explorer_.reads_key(place.id)) return false;
    for (const CharacterStep& step : kind_.steps) {
      if (step.node != place.node) continue;
      for (int byte = step.first; byte <= step.last;) {
        const Place to = {explorer_.step(place.id, static_cast<std::uint8_t>(byte)), step.to};
        if (to.id == Explorer::dead || !reach(to)) return false;
        byte = explorer_.last_alike(static_cast<std::uint8_t>(byte)) + 1;
      }
    }
    return true;
  }

  bool reach(Place to) {
    if (std::ranges::find(seen_, to) != seen_.end()) return true;
    if (seen_.size() == max_places) return false;
    seen_.push_back(to);
    (to.node == 0 ? next_ : now_).push_back(to);
    return true;
  }

  Explorer& explorer_;
  CharacterKind kind_;
  std::vector<Place> now_, next_;
  std::vector<Place> seen_;
};

}  // namespace

CharacterKind plain_characters() {
  return {plain, &Machine::State::plain_reach};
}

CharacterKind word_characters() {
  return {word, &Machine::State::word_reach};
}

std::uint32_t text_reach(Explorer& explorer, Explorer::Id id, CharacterKind kind) {
  if (explorer.step(id, 'a') == Explorer::dead) return 0;  // as almost everywhere but in strings
  std::uint32_t known = 0;
  for (const std::uint32_t frame : explorer.frames(id))
    known = std::max(known, std::min(explorer.state_of(frame).*kind.known, counter_reach(explorer, frame)));
  if (known >= max_characters) return known;
  // What one state does not take, another one may.
  return std::max(known, Search(explorer, kind).run(id));
}

}  // namespace inferno::grammar
