#include "grammar/automaton/dfa.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace inferno::grammar {
namespace {

struct SetHash {
  std::size_t operator()(const std::vector<std::uint32_t>& set) const {
    std::size_t hash = 0xcbf29ce484222325;
    for (const std::uint32_t value : set) hash = (hash ^ value) * 0x100000001b3;
    return hash;
  }
};

void append_joined(std::vector<DfaEdge>& edges, DfaEdge edge) {
  if (!edges.empty() && edges.back().to == edge.to && edges.back().last + 1 == edge.first)
    edges.back().last = edge.last;
  else
    edges.push_back(edge);
}

}  // namespace

std::uint32_t Dfa::add_state(std::span<const DfaEdge> edges, bool accepts, bool inside) {
  const auto first = static_cast<std::uint32_t>(edges_.size());
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  states_.push_back({first, static_cast<std::uint32_t>(edges_.size()), accepts, inside});
  return static_cast<std::uint32_t>(states_.size() - 1);
}

std::optional<std::uint32_t> Dfa::next(std::uint32_t from, std::uint8_t byte) const {
  for (const DfaEdge& edge : edges(from))
    if (edge.first <= byte && byte <= edge.last) return edge.to;
  return std::nullopt;
}

bool Dfa::accepts(std::string_view text) const {
  if (states_.empty()) return false;
  std::uint32_t state = 0;
  for (const char byte : text) {
    const auto to = next(state, static_cast<std::uint8_t>(byte));
    if (!to) return false;
    state = *to;
  }
  return states_[state].accepts;
}

Dfa Dfa::trimmed() const {
  std::vector<std::vector<std::uint32_t>> sources(size());
  for (std::uint32_t from = 0; from < size(); ++from)
    for (const DfaEdge& edge : edges(from)) sources[edge.to].push_back(from);
  std::vector<bool> alive(size());
  std::vector<std::uint32_t> work;
  const auto mark = [&](std::uint32_t state) {
    if (alive[state]) return;
    alive[state] = true;
    work.push_back(state);
  };
  for (std::uint32_t i = 0; i < size(); ++i)
    if (states_[i].accepts) mark(i);
  while (!work.empty()) {
    const std::uint32_t state = work.back();
    work.pop_back();
    for (const std::uint32_t from : sources[state]) mark(from);
  }
  Dfa result;
  if (states_.empty() || !alive[0]) return result;
  constexpr std::uint32_t none = 0xFFFFFFFF;
  std::vector<std::uint32_t> renamed(size(), none);
  std::vector<std::uint32_t> order = {0};
  renamed[0] = 0;
  std::vector<DfaEdge> kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    kept.clear();
    for (DfaEdge edge : edges(order[i])) {
      if (!alive[edge.to]) continue;
      if (renamed[edge.to] == none) {
        renamed[edge.to] = static_cast<std::uint32_t>(order.size());
        order.push_back(edge.to);
      }
      edge.to = renamed[edge.to];
      append_joined(kept, edge);
    }
    result.add_state(kept, states_[order[i]].accepts, states_[order[i]].inside);
  }
  return result;
}

std::uint32_t Nfa::add_state(bool inside) {
  states_.push_back({{}, {}, inside});
  return static_cast<std::uint32_t>(states_.size() - 1);
}

class Determinization {
 public:
  Determinization(const Nfa& nfa, Budget& budget) : nfa_(nfa), budget_(budget), stamps_(nfa.size(), 0) {}

  std::optional<Dfa> run(std::size_t max_states) {
    intern(closure({nfa_.start}));
    Dfa result;
    std::vector<DfaEdge> edges;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_.size() > max_states) return std::nullopt;
      edges.clear();
      bool accepts = false;
      bool inside = false;
      for (const std::uint32_t state : *sets_[i]) {
        accepts |= state == nfa_.accept;
        inside |= nfa_.states_[state].inside;
      }
      step(*sets_[i], edges);
      result.add_state(edges, accepts, inside);
    }
    return result.trimmed();
  }

 private:
  using Set = std::vector<std::uint32_t>;

  Set closure(const Set& from) {
    ++stamp_;
    Set work = from;
    Set result;
    while (!work.empty()) {
      const std::uint32_t state = work.back();
      work.pop_back();
      if (stamps_[state] == stamp_) continue;
      stamps_[state] = stamp_;
      if (!nfa_.states_[state].edges.empty() || state == nfa_.accept) result.push_back(state);
      work.insert(work.end(), nfa_.states_[state].jumps.begin(), nfa_.states_[state].jumps.end());
    }
    std::ranges::sort(result);
    return result;
  }

  std::uint32_t intern(Set set) {
    const auto [at, is_new] = ids_.try_emplace(std::move(set), static_cast<std::uint32_t>(sets_.size()));
    if (is_new) {
      sets_.push_back(&at->first);
      budget_.spend(at->first.size() * 4 + 128);
    }
    return at->second;
  }

  void step(const Set& set, std::vector<DfaEdge>& out) {
    std::vector<DfaEdge> edges;
    std::vector<int> cuts;
    for (const std::uint32_t state : set) {
      for (const DfaEdge& edge : nfa_.states_[state].edges) {
        edges.push_back(edge);
        cuts.push_back(edge.first);
        cuts.push_back(edge.last + 1);
      }
    }
    budget_.spend(0);
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      Set targets;
      for (const DfaEdge& edge : edges)
        if (edge.first <= cuts[i] && cuts[i] <= edge.last) targets.push_back(edge.to);
      if (targets.empty()) continue;
      append_joined(out, {static_cast<std::uint8_t>(cuts[i]), static_cast<std::uint8_t>(cuts[i + 1] - 1),
                          intern(closure(targets))});
    }
  }

  const Nfa& nfa_;
  Budget& budget_;
  std::unordered_map<Set, std::uint32_t, SetHash> ids_;
  std::vector<const Set*> sets_;  // keys of ids_, by number
  std::vector<std::uint32_t> stamps_;
  std::uint32_t stamp_ = 0;
};

std::optional<Dfa> determinize(const Nfa& nfa, Budget& budget, std::size_t max_states) {
  return Determinization(nfa, budget).run(max_states);
}

Dfa literal_texts(std::vector<std::string> texts, Budget& budget) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  struct Node {
    std::vector<DfaEdge> edges;
    bool accepts = false;
  };
  std::vector<Node> nodes(1);
  for (const std::string& text : texts) {
    std::uint32_t at = 0;
    for (const char letter : text) {
      const auto byte = static_cast<std::uint8_t>(letter);
      // The texts are sorted: only the last edge can be this one.
      if (nodes[at].edges.empty() || nodes[at].edges.back().first != byte) {
        nodes[at].edges.push_back({byte, byte, static_cast<std::uint32_t>(nodes.size())});
        nodes.emplace_back();
        budget.spend(sizeof(Node) + sizeof(DfaEdge));
      }
      at = nodes[at].edges.back().to;
    }
    nodes[at].accepts = true;
  }
  Dfa result;
  if (texts.empty()) return result;
  for (const Node& node : nodes) result.add_state(node.edges, node.accepts, false);
  return result;
}

}  // namespace inferno::grammar
