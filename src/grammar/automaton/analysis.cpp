#include "grammar/automaton/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/utf8.h"

namespace inferno::grammar {
namespace {

constexpr int max_depth = 2000;  // of parts within parts

Dfa without_empty_text(const Dfa& dfa) {
  Dfa result;
  std::vector<DfaEdge> edges;
  const auto copy = [&](std::uint32_t state, bool accepts) {
    edges.assign(dfa.edges(state).begin(), dfa.edges(state).end());
    for (DfaEdge& edge : edges) ++edge.to;
    result.add_state(edges, accepts, dfa.state(state).inside);
  };
  copy(0, false);
  for (std::uint32_t state = 0; state < dfa.size(); ++state) copy(state, dfa.state(state).accepts);
  return result.trimmed();
}

Dfa any_byte() {
  Dfa result;
  const DfaEdge edge = {0, 255, 1};
  result.add_state({&edge, 1}, false, false);
  result.add_state({}, true, false);
  return result;
}

}  // namespace

// The same texts except the empty one. Parts that are asked for again are found again, so that the result
// grows no faster than the parts.
class NonEmpty {
 public:
  NonEmpty(Rules& rules, const std::vector<bool>& empty, Budget& budget)
      : rules_(rules), empty_(empty), budget_(budget) {}

  void rewrite_repeats() {
    const std::size_t count = rules_.nodes_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (rules_.nodes_[i].kind != Rules::Kind::repeat) continue;
      const Part body = rules_.nodes_[i].parts[0];
      if (!may_be_empty(body)) continue;
      const Part part = of(body, 0);
      Rules::Node& node = rules_.nodes_[i];
      node.parts[0] = part;
      node.counts.min = 0;
    }
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const auto [rule, plain] = pending_[i];
      rules_.define(rule, of(rules_.rules_[plain].body, 0));
    }
  }

 private:
  bool may_be_empty(Part part) const {
    const auto index = static_cast<std::size_t>(part);
    return index < empty_.size() && empty_[index];
  }

  Part of(Part part, int depth) {
    if (!may_be_empty(part)) return part;
    if (depth > max_depth) refuse(RefusalKind::limit, fmt::format("nested deeper than {} parts", max_depth));
    if (const auto known = known_.find(part); known != known_.end()) return known->second;
    budget_.spend(sizeof(Rules::Node));
    const Part result = rewritten(part, depth + 1);
    known_.emplace(part, result);
    return result;
  }

  Part rewritten(Part part, int depth) {
    const Rules::Node node = rules_.node(part);
    switch (node.kind) {
      case Rules::Kind::sequence: return sequence(node.parts, depth);
      case Rules::Kind::either: {
        std::vector<Part> parts;
        for (const Part each : node.parts) parts.push_back(of(each, depth));
        return rules_.either(std::move(parts));
      }
      case Rules::Kind::repeat: {
        const bool body_empty = may_be_empty(node.parts[0]);
        return rules_.repeat(of(node.parts[0], depth),
                             {std::max(body_empty ? 0U : node.counts.min, 1U), node.counts.max});
      }
      case Rules::Kind::reference: {
        const auto [at, is_new] = rule_of_.try_emplace(node.index, Rule{});
        if (is_new) {
          at->second = rules_.declare(rules_.rules_[node.index].name);
          pending_.emplace_back(at->second, node.index);
        }
        return rules_.reference(at->second);
      }
      case Rules::Kind::lexeme:
        return rules_.lexeme(std::make_shared<Dfa>(without_empty_text(*rules_.lexemes_[node.index].dfa)));
      case Rules::Kind::free_text:
        return rules_.sequence({rules_.lexeme(std::make_shared<Dfa>(any_byte())), part});
      case Rules::Kind::empty: return rules_.never();
      case Rules::Kind::never:
      case Rules::Kind::literal:
      case Rules::Kind::characters:
      case Rules::Kind::object:
      case Rules::Kind::array:
      case Rules::Kind::token:
      case Rules::Kind::token_except: break;
    }
    return part;
  }

  // All parts may be empty: one of them is not, and those before it are.
  Part sequence(const std::vector<Part>& parts, int depth) {
    std::vector<Part> ways;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<Part> way = {of(parts[i], depth)};
      way.insert(way.end(), parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end());
      budget_.spend(way.size() * sizeof(Part));
      ways.push_back(rules_.sequence(std::move(way)));
    }
    return rules_.either(std::move(ways));
  }

  Rules& rules_;
  const std::vector<bool>& empty_;
  Budget& budget_;
  std::map<Part, Part> known_;
  std::map<std::uint32_t, Rule> rule_of_;
  std::vector<std::pair<Rule, std::uint32_t>> pending_;
};

Analysis::Analysis(Rules& rules, Part root, Budget& budget) : rules_(rules), budget_(budget) {
  for (const auto& rule : rules_.rules_)
    if (!rule.defined) refuse(RefusalKind::invalid, fmt::format("rule {} is not defined", quote(rule.name)));
  settle(empty_, &Analysis::test_empty);
  NonEmpty(rules_, empty_, budget).rewrite_repeats();
  settle(empty_, &Analysis::test_empty);
  settle(possible_, &Analysis::test_possible);
  if (!is_possible(root)) refuse(RefusalKind::unsatisfiable, "no finite text satisfies this");
  refuse_left_recursion();
}

// The least fixed point. Parts come before those they are part of, except through rules; hence the passes
// alternate in direction.
void Analysis::settle(std::vector<bool>& known, bool (Analysis::*test)(Part) const) {
  const std::size_t count = rules_.nodes_.size();
  known.assign(count, false);
  bool forwards = true;
  for (bool changed = true; changed; forwards = !forwards) {
    changed = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = forwards ? i : count - 1 - i;
      if (known[at] || !(this->*test)(static_cast<Part>(at))) continue;
      known[at] = true;
      changed = true;
    }
    budget_.check_time();
  }
}

bool Analysis::test_empty(Part part) const {
  const Rules::Node& node = rules_.node(part);
  switch (node.kind) {
    case Rules::Kind::empty:
    case Rules::Kind::free_text: return true;
    case Rules::Kind::sequence:
      return std::ranges::all_of(node.parts, [this](Part p) { return may_be_empty(p); });
    case Rules::Kind::either:
      return std::ranges::any_of(node.parts, [this](Part p) { return may_be_empty(p); });
    case Rules::Kind::repeat: return node.counts.min == 0 || may_be_empty(node.parts[0]);
    case Rules::Kind::reference: return may_be_empty(rules_.rules_[node.index].body);
    case Rules::Kind::lexeme:
      return rules_.lexemes_[node.index].dfa->state(0).accepts && node.counts.min == 0;
    case Rules::Kind::never:
    case Rules::Kind::literal:
    case Rules::Kind::characters:
    case Rules::Kind::object:
    case Rules::Kind::array:
    case Rules::Kind::token:
    case Rules::Kind::token_except: return false;
  }
  return false;
}

bool Analysis::test_possible(Part part) const {
  const Rules::Node& node = rules_.node(part);
  const auto possible = [this](Part p) { return is_possible(p); };
  switch (node.kind) {
    case Rules::Kind::never: return false;
    case Rules::Kind::sequence: return std::ranges::all_of(node.parts, possible);
    case Rules::Kind::either: return std::ranges::any_of(node.parts, possible);
    case Rules::Kind::repeat: return node.counts.min == 0 || possible(node.parts[0]);
    case Rules::Kind::reference: return possible(rules_.rules_[node.index].body);
    case Rules::Kind::object: return object_is_possible(rules_.objects_[node.index]);
    case Rules::Kind::array: return array_is_possible(rules_.arrays_[node.index]);
    case Rules::Kind::empty:
    case Rules::Kind::literal:
    case Rules::Kind::characters:
    case Rules::Kind::lexeme:
    case Rules::Kind::token:
    case Rules::Kind::token_except:
    case Rules::Kind::free_text: return true;
  }
  return false;
}

bool Analysis::object_is_possible(const ObjectParts& parts) const {
  std::uint32_t available = 0;
  std::uint32_t required = 0;
  for (const auto& property : parts.properties) {
    const bool possible = is_possible(property.value);
    if (property.required && !possible) return false;
    available += possible ? 1 : 0;
    required += property.required ? 1 : 0;
  }
  const bool more =
      std::ranges::any_of(parts.undeclared, [this](const auto& u) { return is_possible(u.value); });
  return required <= parts.counts.max && parts.counts.min <= parts.counts.max &&
         (more || available >= parts.counts.min);
}

bool Analysis::array_is_possible(const ArrayParts& parts) const {
  if (parts.counts.min > parts.counts.max) return false;
  const std::size_t first = std::min<std::size_t>(parts.counts.min, parts.first.size());
  for (std::size_t i = 0; i < first; ++i)
    if (!is_possible(parts.first[i])) return false;
  return parts.counts.min <= parts.first.size() || (parts.rest && is_possible(*parts.rest));
}

std::vector<std::uint32_t> Analysis::left_references(Part body) const {
  std::vector<std::uint32_t> found;
  std::vector<Part> work = {body};
  std::set<Part> seen;
  while (!work.empty()) {
    const Part part = work.back();
    work.pop_back();
    if (!is_possible(part) || !seen.insert(part).second) continue;
    const Rules::Node& node = rules_.node(part);
    if (node.kind == Rules::Kind::reference) found.push_back(node.index);
    if (node.kind == Rules::Kind::either || node.kind == Rules::Kind::repeat)
      work.insert(work.end(), node.parts.begin(), node.parts.end());
    if (node.kind != Rules::Kind::sequence) continue;
    for (const Part each : node.parts) {
      work.push_back(each);
      if (!may_be_empty(each)) break;
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void Analysis::refuse_left_recursion() {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(rules_.rules_.size(), Mark::fresh);
  struct Visit {
    std::uint32_t rule;
    std::vector<std::uint32_t> next;
  };
  std::vector<Visit> path;
  const auto open = [&](std::uint32_t rule) {
    marks[rule] = Mark::open;
    path.push_back({rule, left_references(rules_.rules_[rule].body)});
    budget_.spend(0);
  };
  for (std::uint32_t start = 0; start < marks.size(); ++start) {
    if (marks[start] != Mark::fresh) continue;
    open(start);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next.empty()) {
        marks[visit.rule] = Mark::done;
        path.pop_back();
        continue;
      }
      const std::uint32_t next = visit.next.back();
      visit.next.pop_back();
      if (marks[next] == Mark::open)
        refuse(RefusalKind::unsupported,
               fmt::format("rule {} refers to itself before any text (left recursion)",
                           quote(rules_.rules_[next].name)));
      if (marks[next] == Mark::fresh) open(next);
    }
  }
}

}  // namespace inferno::grammar
