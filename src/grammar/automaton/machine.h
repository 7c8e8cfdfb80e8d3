// The one machine that all constraints become: states with edges over bytes and tokens, grouped into rules
// that call each other, so that a text is followed with a stack. A frame of the stack has a counter, which
// bounds lengths and repeats without copies of states, and a set of keys. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/token.h"
#include "grammar/rules.h"

namespace inferno::grammar {

struct Machine {
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  struct Edge {
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    bool ticks = false;  // adds one to the frame's counter
    std::uint32_t to = 0;
  };
  // Without a byte: to another state of the rule, or through a whole other rule.
  struct Jump {
    std::uint32_t to = 0;
    std::uint32_t rule = none;  // called first
    bool ticks = false;
  };
  struct TokenEdge {
    std::uint32_t ids = 0;  // index into token_sets, sorted
    bool except = false;    // any ordinary token but these
    std::uint32_t to = 0;
  };
  struct State {
    std::uint32_t first_edge = 0, last_edge = 0;
    std::uint32_t first_jump = 0, last_jump = 0;
    std::uint32_t first_token = 0, last_token = 0;
    std::uint32_t rule = 0;
    // How many more ticks a text through this state has at least and at most. A frame whose counter could
    // not end within its bounds is never entered. Of a key: how many keys go on from here.
    std::uint32_t need = 0;
    std::uint32_t reach = Counts::unbounded;
    std::uint32_t keys_below = Counts::unbounded;  // entered only while the frame has seen fewer keys
    // How many plain and how many word characters (characters.h) may follow at least, whichever they are and
    // whatever the counter says.
    std::uint32_t plain_reach = 0;
    std::uint32_t word_reach = 0;
    bool is_final = false;
    bool loops_on_text = false;  // every plain character (characters.h) leads back here
    bool is_free = false;        // every byte leads back here
    bool only_returns = false;   // final, and nothing else: a call that returns here needs no frame
  };
  struct RuleInfo {
    std::uint32_t start = 0;
    Counts counts;
    bool is_key = false;  // its text is a key that the calling frame must not have seen
    // The largest `need` and the largest bounded `reach` of its states.
    std::uint32_t max_need = 0;
    std::uint32_t max_reach = 0;
  };

  std::vector<State> states;
  std::vector<Edge> edges;
  std::vector<Jump> jumps;
  std::vector<TokenEdge> token_edges;
  std::vector<std::vector<TokenId>> token_sets;
  std::vector<RuleInfo> rules;  // the first is the root
  // Bytes that no edge tells apart have the same class.
  std::array<std::uint8_t, 256> class_of{};
  std::uint32_t classes = 0;
  bool has_few_keys = false;  // some object could run out of undeclared keys

  std::span<const Edge> edges_of(const State& state) const {
    return std::span(edges).subspan(state.first_edge, state.last_edge - state.first_edge);
  }
  std::span<const Jump> jumps_of(const State& state) const {
    return std::span(jumps).subspan(state.first_jump, state.last_jump - state.first_jump);
  }
  std::span<const TokenEdge> tokens_of(const State& state) const {
    return std::span(token_edges).subspan(state.first_token, state.last_token - state.first_token);
  }
  std::size_t bytes() const {
    return states.size() * sizeof(State) + edges.size() * sizeof(Edge) + jumps.size() * sizeof(Jump);
  }
};

// Refuses left recursion and what no finite text satisfies. May add parts to the rules.
Machine build_machine(Rules& rules, Part root, Budget& budget);

}  // namespace inferno::grammar
