// Deterministic automata over bytes, for the parts of a constraint that must be intersected or subtracted:
// patterns, formats, ranges of numbers, names of properties.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton/characters.h"
#include "grammar/budget.h"

namespace inferno::grammar {

// A state is "inside" between the bytes of one character (of UTF-8, or of an escape in a JSON string);
// lengths count the edges that leave states that are not inside, except the closing quote of a string.
struct DfaEdge {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  std::uint32_t to = 0;
};

class Dfa {
 public:
  struct State {
    std::uint32_t first_edge = 0;
    std::uint32_t last_edge = 0;  // one past it
    bool accepts = false;
    bool inside = false;
  };

  // Edges must be sorted and disjoint. The first state added is the start.
  std::uint32_t add_state(std::span<const DfaEdge> edges, bool accepts, bool inside);

  std::size_t size() const { return states_.size(); }
  const State& state(std::uint32_t index) const { return states_[index]; }
  std::span<const DfaEdge> edges(std::uint32_t index) const {
    return std::span(edges_).subspan(states_[index].first_edge,
                                     states_[index].last_edge - states_[index].first_edge);
  }
  std::optional<std::uint32_t> next(std::uint32_t from, std::uint8_t byte) const;

  bool accepts(std::string_view text) const;
  // Only meaningful when trimmed, as everything below is.
  bool is_empty() const { return states_.empty(); }
  std::size_t bytes() const { return states_.size() * sizeof(State) + edges_.size() * sizeof(DfaEdge); }

  // Without the states that cannot be reached, or from which no accepting state can be.
  Dfa trimmed() const;

 private:
  std::vector<State> states_;
  std::vector<DfaEdge> edges_;
};

class Nfa {
 public:
  std::uint32_t add_state(bool inside = false);
  void add_edge(std::uint32_t from, ByteRange range, std::uint32_t to) {
    states_[from].edges.push_back({range.first, range.last, to});
  }
  void add_jump(std::uint32_t from, std::uint32_t to) { states_[from].jumps.push_back(to); }
  std::size_t size() const { return states_.size(); }

  std::uint32_t start = 0;
  std::uint32_t accept = 0;

 private:
  friend class Determinization;
  struct State {
    std::vector<DfaEdge> edges;
    std::vector<std::uint32_t> jumps;
    bool inside = false;
  };
  std::vector<State> states_;
};

// nullopt if it would have more than `max_states` states.
std::optional<Dfa> determinize(const Nfa& nfa, Budget& budget, std::size_t max_states);

Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget);
Dfa difference(const Dfa& a, const Dfa& b, Budget& budget);
Dfa unite(const Dfa& a, const Dfa& b, Budget& budget);
// Exactly these texts. `inside` is not set.
Dfa literal_texts(std::vector<std::string> texts, Budget& budget);

// How many texts go on from each state of a trimmed automaton; Lengths::unbounded beyond a thousand.
std::vector<std::uint32_t> numbers_of_texts(const Dfa& dfa);

// How many characters can still come before a text of the automaton ends. `gap` tells that not every number
// between the two is possible.
struct Lengths {
  static constexpr std::uint32_t unbounded = 0xFFFFFFFF;
  std::uint32_t shortest = 0;
  std::uint32_t longest = 0;
  bool gap = false;
};
// For every state of a trimmed automaton over the content of a JSON string and its closing quote.
std::vector<Lengths> lengths_of(const Dfa& dfa);
// The texts of `min` to `max` characters, by counting in the states; nullopt beyond `max_states`.
std::optional<Dfa> with_lengths(const Dfa& dfa, std::uint32_t min, std::uint32_t max, std::size_t max_states,
                                Budget& budget);

}  // namespace inferno::grammar
