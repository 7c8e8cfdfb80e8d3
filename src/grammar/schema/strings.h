// The texts of JSON strings: any string, keys, patterns and formats, as automata over what stands between the
// opening quote and the closing one, which is included.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "grammar/automaton/dfa.h"
#include "grammar/rules.h"

namespace inferno::grammar {

// With every escape of JSON.
std::shared_ptr<const Dfa> any_string();
// With the shortest escapes only, so that equal strings are equal texts.
std::shared_ptr<const Dfa> plain_string();

// The strings in which the pattern matches; nullopt if that is too large for an automaton.
std::optional<Dfa> pattern_automaton(std::string_view pattern, Budget& budget);

// One of the ten formats that are enforced; nullptr for any other name. Some are narrower than their RFC.
std::shared_ptr<const Dfa> format_automaton(std::string_view name);
// lengths_of() the automaton; computed once for any_string() and the formats.
SharedLengths shared_lengths(const std::shared_ptr<const Dfa>& dfa);
// What a format says about the number of characters.
Counts format_counts(std::string_view name);

}  // namespace inferno::grammar
