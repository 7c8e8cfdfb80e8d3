// Products of automata, and the lengths of their texts.
#include <algorithm>
#include <unordered_map>

#include "grammar/automaton/dfa.h"

namespace inferno::grammar {
namespace {

enum class Operation { both, first_only, either };

constexpr std::uint32_t none = 0xFFFFFFFF;

class Product {
 public:
  Product(const Dfa& a, const Dfa& b, Operation operation, Budget& budget)
      : a_(a), b_(b), operation_(operation), budget_(budget) {}

  Dfa run() {
    Dfa result;
    const std::uint32_t first = a_.is_empty() ? none : 0;
    const std::uint32_t second = b_.is_empty() ? none : 0;
    if (!is_useful(first, second)) return result;
    intern(first, second);
    std::vector<DfaEdge> edges;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto [x, y] = pairs_[i];
      edges.clear();
      step(x, y, edges);
      const bool in_a = x != none && a_.state(x).accepts;
      const bool in_b = y != none && b_.state(y).accepts;
      const bool inside = (x != none && a_.state(x).inside) || (y != none && b_.state(y).inside);
      result.add_state(edges, accepts(in_a, in_b), inside);
    }
    return result.trimmed();
  }

 private:
  bool accepts(bool in_a, bool in_b) const {
    switch (operation_) {
      case Operation::both: return in_a && in_b;
      case Operation::first_only: return in_a && !in_b;
      case Operation::either: return in_a || in_b;
    }
    return false;
  }
  bool is_useful(std::uint32_t x, std::uint32_t y) const {
    switch (operation_) {
      case Operation::both: return x != none && y != none;
      case Operation::first_only: return x != none;
      case Operation::either: return x != none || y != none;
    }
    return false;
  }

  std::uint32_t intern(std::uint32_t x, std::uint32_t y) {
    const auto [at, is_new] = ids_.try_emplace(std::uint64_t{x} << 32 | y, pairs_.size());
    if (is_new) {
      pairs_.emplace_back(x, y);
      budget_.spend(96);
    }
    return static_cast<std::uint32_t>(at->second);
  }

  static std::span<const DfaEdge> edges_of(const Dfa& dfa, std::uint32_t state) {
    return state == none ? std::span<const DfaEdge>() : dfa.edges(state);
  }

  void step(std::uint32_t x, std::uint32_t y, std::vector<DfaEdge>& out) {
    const auto first = edges_of(a_, x);
    const auto second = edges_of(b_, y);
    std::size_t i = 0;
    std::size_t j = 0;
    for (int byte = 0; byte < 256;) {
      while (i < first.size() && first[i].last < byte) ++i;
      while (j < second.size() && second[j].last < byte) ++j;
      const bool in_first = i < first.size() && first[i].first <= byte;
      const bool in_second = j < second.size() && second[j].first <= byte;
      int end = 255;
      if (i < first.size()) end = std::min(end, in_first ? int{first[i].last} : first[i].first - 1);
      if (j < second.size()) end = std::min(end, in_second ? int{second[j].last} : second[j].first - 1);
      const std::uint32_t to_first = in_first ? first[i].to : none;
      const std::uint32_t to_second = in_second ? second[j].to : none;
      if (is_useful(to_first, to_second)) {
        const std::uint32_t to = intern(to_first, to_second);
        if (!out.empty() && out.back().to == to && out.back().last + 1 == byte)
          out.back().last = static_cast<std::uint8_t>(end);
        else
          out.push_back({static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(end), to});
      }
      byte = end + 1;
    }
  }

  const Dfa& a_;
  const Dfa& b_;
  Operation operation_;
  Budget& budget_;
  std::unordered_map<std::uint64_t, std::size_t> ids_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
};

bool counts(const Dfa& dfa, std::uint32_t from, const DfaEdge& edge) {
  return !dfa.state(from).inside && edge.first != '"';
}

}  // namespace

Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget) {
  return Product(a, b, Operation::both, budget).run();
}

Dfa difference(const Dfa& a, const Dfa& b, Budget& budget) {
  return Product(a, b, Operation::first_only, budget).run();
}

Dfa unite(const Dfa& a, const Dfa& b, Budget& budget) {
  return Product(a, b, Operation::either, budget).run();
}

std::vector<std::uint32_t> numbers_of_texts(const Dfa& dfa) {
  constexpr std::uint64_t most = 1000;
  std::vector<std::uint32_t> numbers(dfa.size(), Lengths::unbounded);
  // A state is settled when all its targets are; a loop is never settled and stays unbounded.
  std::vector<std::uint32_t> waiting(dfa.size(), 0);
  std::vector<std::vector<std::uint32_t>> sources(dfa.size());
  std::vector<std::uint32_t> work;
  for (std::uint32_t state = 0; state < dfa.size(); ++state) {
    for (const DfaEdge& edge : dfa.edges(state)) sources[edge.to].push_back(state);
    waiting[state] = static_cast<std::uint32_t>(dfa.edges(state).size());
    if (waiting[state] == 0) work.push_back(state);
  }
  while (!work.empty()) {
    const std::uint32_t state = work.back();
    work.pop_back();
    std::uint64_t total = dfa.state(state).accepts ? 1 : 0;
    for (const DfaEdge& edge : dfa.edges(state))
      total = std::min(total + std::uint64_t{numbers[edge.to]} * (1U + edge.last - edge.first),
                       std::uint64_t{Lengths::unbounded});
    numbers[state] = total > most ? Lengths::unbounded : static_cast<std::uint32_t>(total);
    for (const std::uint32_t from : sources[state])
      if (--waiting[from] == 0) work.push_back(from);
  }
  return numbers;
}

// possible[n]: n more characters may end a text; pumped[n]: the same through a state that a character may
// leave unchanged, so that every larger number is possible too.
class LengthTable {
 public:
  LengthTable(const Dfa& dfa, std::size_t horizon)
      : dfa_(dfa), horizon_(horizon), possible_(dfa.size() * horizon), pumped_(dfa.size() * horizon) {
    for (std::uint32_t state = 0; state < dfa.size(); ++state) loops_.push_back(is_in_loop(state));
    // Edges inside a character cost nothing, and a character has at most 12 bytes, so that each round settles
    // after a few repetitions.
    for (std::size_t n = 0; n < horizon; ++n)
      for (int repetition = 0; repetition < 16 && improve(n); ++repetition) continue;
  }

  Lengths of(std::uint32_t state) const {
    const auto possible = [&](std::size_t n) { return possible_[state * horizon_ + n] != 0; };
    std::size_t shortest = 0;
    while (shortest < horizon_ && !possible(shortest)) ++shortest;
    if (shortest == horizon_) return {Lengths::unbounded, Lengths::unbounded, true};
    std::size_t longest = horizon_ - 1;
    while (!possible(longest)) --longest;
    Lengths out = {static_cast<std::uint32_t>(shortest), static_cast<std::uint32_t>(longest), false};
    for (std::size_t n = shortest; n <= longest; ++n) out.gap = out.gap || !possible(n);
    if (longest + 1 < horizon_) return out;
    out.longest = Lengths::unbounded;
    const auto* row = &pumped_[state * horizon_];
    out.gap = out.gap || std::find(row, row + horizon_, 1) == row + horizon_;
    return out;
  }

 private:
  bool is_in_loop(std::uint32_t state) const {
    for (const DfaEdge& first : dfa_.edges(state)) {
      if (!counts(dfa_, state, first)) continue;
      if (first.to == state) return true;
      for (const DfaEdge& second : dfa_.edges(first.to))
        if (second.to == state && counts(dfa_, first.to, second)) return true;
    }
    return false;
  }

  bool improve(std::size_t n) {
    bool changed = false;
    for (std::uint32_t state = 0; state < dfa_.size(); ++state) {
      const std::size_t at = state * horizon_ + n;
      if (possible_[at] != 0 && pumped_[at] != 0) continue;
      bool possible = n == 0 && dfa_.state(state).accepts;
      bool pumped = false;
      for (const DfaEdge& edge : dfa_.edges(state)) {
        const bool costs = counts(dfa_, state, edge);
        if (costs && n == 0) continue;
        const std::size_t next = edge.to * horizon_ + (costs ? n - 1 : n);
        possible = possible || possible_[next] != 0;
        pumped = pumped || pumped_[next] != 0;
      }
      pumped = pumped || (loops_[state] && possible);
      changed = changed || possible != (possible_[at] != 0) || pumped != (pumped_[at] != 0);
      possible_[at] = possible ? 1 : 0;
      pumped_[at] = pumped ? 1 : 0;
    }
    return changed;
  }

  const Dfa& dfa_;
  std::size_t horizon_;
  std::vector<bool> loops_;
  std::vector<std::uint8_t> possible_, pumped_;  // [state, n]
};

std::vector<Lengths> lengths_of(const Dfa& dfa) {
  const std::size_t horizon = std::min<std::size_t>(dfa.size() > 1000 ? 64 : 512, 2 * dfa.size() + 8);
  const LengthTable table(dfa, horizon);
  std::vector<Lengths> result(dfa.size());
  for (std::uint32_t state = 0; state < dfa.size(); ++state) result[state] = table.of(state);
  return result;
}

std::optional<Dfa> with_lengths(const Dfa& dfa, std::uint32_t min, std::uint32_t max, std::size_t max_states,
                                Budget& budget) {
  // Beyond `last` the count does not matter: it is at least `min`, and no maximum is left to be exceeded.
  const std::uint32_t last = max == Lengths::unbounded ? min : max;
  if (dfa.is_empty() || dfa.size() * (std::size_t{last} + 1) > max_states) return std::nullopt;
  const auto id = [&](std::uint32_t state, std::uint32_t count) { return count * dfa.size() + state; };
  Dfa result;
  std::vector<DfaEdge> edges;
  for (std::uint32_t count = 0; count <= last; ++count) {
    for (std::uint32_t state = 0; state < dfa.size(); ++state) {
      edges.clear();
      for (DfaEdge edge : dfa.edges(state)) {
        std::uint32_t next = count;
        if (counts(dfa, state, edge)) {
          if (count == last && max != Lengths::unbounded) continue;
          next = std::min(count + 1, last);
        }
        edge.to = static_cast<std::uint32_t>(id(edge.to, next));
        edges.push_back(edge);
      }
      result.add_state(edges, dfa.state(state).accepts && count >= min, dfa.state(state).inside);
      budget.spend(sizeof(Dfa::State) + edges.size() * sizeof(DfaEdge));
    }
  }
  return result.trimmed();
}

}  // namespace inferno::grammar
