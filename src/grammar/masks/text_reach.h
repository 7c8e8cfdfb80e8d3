// How much text of any kind a configuration surely takes, so that tokens of that kind need not be tried.
#pragma once

#include <cstdint>
#include <span>

#include "grammar/automaton/explorer.h"

namespace inferno::grammar {

// An automaton over the bytes of UTF-8. It is in its first node before and after each character; the texts
// that it follows are those of a kind of characters.
struct CharacterStep {
  std::uint8_t first = 0, last = 0;
  std::uint8_t node = 0, to = 0;
};
struct CharacterKind {
  std::span<const CharacterStep> steps;
  std::uint32_t Machine::State::* known;  // what a state takes without any other
};

CharacterKind plain_characters();  // is_plain() in characters.h
CharacterKind word_characters();   // is_word()

// The number of characters of this kind, whichever they are, that may follow at least; Counts::unbounded if
// any number may. Looks no further than 32 characters, and not at all at the text of keys.
std::uint32_t text_reach(Explorer& explorer, Explorer::Id id, CharacterKind kind);

}  // namespace inferno::grammar
