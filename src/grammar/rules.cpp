#include "grammar/rules.h"

#include <algorithm>

namespace inferno::grammar {
namespace {

// Text without the marker, then the marker: one state for each of its prefixes that may have been seen.
Dfa marker_search(std::string_view marker) {
  std::vector<std::size_t> failure(marker.size() + 1, 0);
  for (std::size_t i = 1, k = 0; i < marker.size(); ++i) {
    while (k > 0 && marker[i] != marker[k]) k = failure[k];
    if (marker[i] == marker[k]) ++k;
    failure[i + 1] = k;
  }
  Dfa result;
  for (std::size_t seen = 0; seen < marker.size(); ++seen) {
    std::vector<DfaEdge> edges;
    for (int byte = 0; byte < 256; ++byte) {
      std::size_t k = seen;
      while (k > 0 && static_cast<std::uint8_t>(marker[k]) != byte) k = failure[k];
      const std::uint32_t to =
          static_cast<std::uint8_t>(marker[k]) == byte ? static_cast<std::uint32_t>(k + 1) : 0;
      if (!edges.empty() && edges.back().to == to)
        edges.back().last = static_cast<std::uint8_t>(byte);
      else
        edges.push_back({static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), to});
    }
    result.add_state(edges, false, false);
  }
  result.add_state({}, true, false);
  return result;
}

}  // namespace

Rules::Rules() {
  nodes_.push_back({.kind = Kind::never});
  nodes_.push_back({.kind = Kind::empty});
}

Part Rules::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<Part>(nodes_.size() - 1);
}

Part Rules::literal(std::string_view text) {
  if (text.empty()) return empty();
  literals_.emplace_back(text);
  return add({.kind = Kind::literal, .index = static_cast<std::uint32_t>(literals_.size() - 1)});
}

Part Rules::one_of(std::vector<std::string> texts, Budget& budget) {
  if (texts.size() == 1) return literal(texts.front());
  return lexeme(std::make_shared<Dfa>(literal_texts(std::move(texts), budget)));
}

Part Rules::characters(const CharacterSet& set, TextForm form) {
  if (set.empty()) return never();
  sets_.push_back(set);
  return add({.kind = Kind::characters, .form = form, .index = static_cast<std::uint32_t>(sets_.size() - 1)});
}

Part Rules::sequence(std::vector<Part> parts) {
  if (std::ranges::find(parts, never()) != parts.end()) return never();
  std::erase(parts, empty());
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::sequence, .parts = std::move(parts)});
}

Part Rules::either(std::vector<Part> parts) {
  std::erase(parts, never());
  if (parts.empty()) return never();
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::either, .parts = std::move(parts)});
}

Part Rules::repeat(Part part, Counts counts) {
  if (counts.min > counts.max) return never();
  if (counts.max == 0 || part == empty()) return empty();
  if (part == never()) return counts.min == 0 ? empty() : never();
  if (counts.min == 1 && counts.max == 1) return part;
  return add({.kind = Kind::repeat, .counts = counts, .parts = {part}});
}

Rule Rules::declare(std::string name) {
  rules_.push_back({.name = std::move(name)});
  return static_cast<Rule>(rules_.size() - 1);
}

void Rules::define(Rule rule, Part body) {
  RuleEntry& entry = rules_[static_cast<std::size_t>(rule)];
  entry.body = body;
  entry.defined = true;
}

Part Rules::reference(Rule rule) {
  return add({.kind = Kind::reference, .index = static_cast<std::uint32_t>(rule)});
}

Part Rules::lexeme(std::shared_ptr<const Dfa> dfa, Counts counts, SharedLengths lengths) {
  if (dfa->is_empty() || counts.min > counts.max) return never();
  if (counts.is_free())
    lengths = nullptr;
  else if (lengths == nullptr)
    lengths = std::make_shared<const std::vector<Lengths>>(lengths_of(*dfa));
  lexemes_.push_back({std::move(dfa), std::move(lengths)});
  return add(
      {.kind = Kind::lexeme, .counts = counts, .index = static_cast<std::uint32_t>(lexemes_.size() - 1)});
}

Part Rules::object(ObjectParts parts) {
  blanks();
  objects_.push_back(std::move(parts));
  return add({.kind = Kind::object, .index = static_cast<std::uint32_t>(objects_.size() - 1)});
}

Part Rules::array(ArrayParts parts) {
  blanks();
  arrays_.push_back(std::move(parts));
  return add({.kind = Kind::array, .index = static_cast<std::uint32_t>(arrays_.size() - 1)});
}

Part Rules::token(std::vector<TokenId> ids) {
  if (ids.empty()) return never();
  std::ranges::sort(ids);
  tokens_.push_back(std::move(ids));
  return add({.kind = Kind::token, .index = static_cast<std::uint32_t>(tokens_.size() - 1)});
}

Part Rules::token_except(std::vector<TokenId> ids) {
  std::ranges::sort(ids);
  tokens_.push_back(std::move(ids));
  return add({.kind = Kind::token_except, .index = static_cast<std::uint32_t>(tokens_.size() - 1)});
}

Part Rules::free_text() {
  return add({.kind = Kind::free_text});
}

Part Rules::text_up_to(std::string_view marker) {
  if (marker.empty()) return free_text();
  return lexeme(std::make_shared<Dfa>(marker_search(marker)));
}

Part Rules::blanks() {
  if (compact_) return empty();
  if (!blanks_) {
    const Rule rule = declare("blanks");
    const Part indent = repeat(characters({{' ', ' '}, {'\t', '\t'}}), {0, 64});
    define(rule, either({empty(), literal(" "), sequence({literal("\n"), indent})}));
    blanks_ = reference(rule);
  }
  return *blanks_;
}

Part Rules::embed(const Rules& other, Part root) {
  compact_ = compact_ || other.compact_;
  blanks();
  const auto base = static_cast<std::uint32_t>(nodes_.size());
  const auto moved = [base](Part part) { return static_cast<Part>(static_cast<std::uint32_t>(part) + base); };
  const auto offset = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
  const std::array<std::uint32_t, 7> bases = {offset(literals_), offset(sets_),   offset(lexemes_),
                                              offset(objects_),  offset(arrays_), offset(tokens_),
                                              offset(rules_)};
  literals_.insert(literals_.end(), other.literals_.begin(), other.literals_.end());
  sets_.insert(sets_.end(), other.sets_.begin(), other.sets_.end());
  lexemes_.insert(lexemes_.end(), other.lexemes_.begin(), other.lexemes_.end());
  tokens_.insert(tokens_.end(), other.tokens_.begin(), other.tokens_.end());
  for (ObjectParts parts : other.objects_) {
    for (auto& property : parts.properties) property.value = moved(property.value);
    for (auto& undeclared : parts.undeclared) undeclared.value = moved(undeclared.value);
    objects_.push_back(std::move(parts));
  }
  for (ArrayParts parts : other.arrays_) {
    for (Part& part : parts.first) part = moved(part);
    if (parts.rest) parts.rest = moved(*parts.rest);
    arrays_.push_back(std::move(parts));
  }
  for (RuleEntry entry : other.rules_) {
    entry.body = moved(entry.body);
    rules_.push_back(std::move(entry));
  }
  for (Node node : other.nodes_) {
    for (Part& part : node.parts) part = moved(part);
    switch (node.kind) {
      case Kind::literal: node.index += bases[0]; break;
      case Kind::characters: node.index += bases[1]; break;
      case Kind::lexeme: node.index += bases[2]; break;
      case Kind::object: node.index += bases[3]; break;
      case Kind::array: node.index += bases[4]; break;
      case Kind::token:
      case Kind::token_except: node.index += bases[5]; break;
      case Kind::reference: node.index += bases[6]; break;
      case Kind::never:
      case Kind::empty:
      case Kind::sequence:
      case Kind::either:
      case Kind::repeat:
      case Kind::free_text: break;
    }
    nodes_.push_back(std::move(node));
  }
  return moved(root);
}

std::uint64_t Rules::min_characters(Part part) const {
  // Parts come before those they are part of.
  std::vector<std::uint64_t> known(static_cast<std::size_t>(part) + 1, 0);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Node& each = nodes_[i];
    const auto of = [&known](Part p) { return known[static_cast<std::size_t>(p)]; };
    if (each.kind == Kind::characters) known[i] = 1;
    if (each.kind == Kind::repeat)
      known[i] = std::min<std::uint64_t>(of(each.parts[0]) * each.counts.min, 1 << 30);
    if (each.kind == Kind::sequence)
      for (const Part p : each.parts) known[i] = std::min<std::uint64_t>(known[i] + of(p), 1 << 30);
    if (each.kind != Kind::either) continue;
    known[i] = of(each.parts[0]);
    for (const Part p : each.parts) known[i] = std::min(known[i], of(p));
  }
  return known.back();
}

// Thompson's construction; an explicit stack, because parts may be nested as deeply as their author liked.
class NfaWriter {
 public:
  NfaWriter(const Rules& rules, Budget& budget, std::size_t max_states)
      : rules_(rules), budget_(budget), max_states_(max_states) {}

  std::optional<Nfa> run(Part part) {
    nfa_.start = nfa_.add_state();
    nfa_.accept = nfa_.add_state();
    work_.push_back({part, nfa_.start, nfa_.accept});
    while (!work_.empty()) {
      const Task task = work_.back();
      work_.pop_back();
      budget_.spend(64);
      if (nfa_.size() + work_.size() > 8 * max_states_ || !write(task)) return std::nullopt;
    }
    return std::move(nfa_);
  }

 private:
  struct Task {
    Part part;
    std::uint32_t from, to;
  };

  bool write(const Task& task) {
    const Rules::Node& node = rules_.node(task.part);
    switch (node.kind) {
      case Rules::Kind::never: return true;
      case Rules::Kind::empty: nfa_.add_jump(task.from, task.to); return true;
      case Rules::Kind::literal: write_literal(task, rules_.literals_[node.index]); return true;
      case Rules::Kind::characters:
        for (const ByteRanges& ranges : byte_sequences(rules_.sets_[node.index], node.form))
          write_ranges(task, ranges);
        return true;
      case Rules::Kind::sequence: {
        std::uint32_t from = task.from;
        for (std::size_t i = 0; i < node.parts.size(); ++i) {
          const std::uint32_t to = i + 1 == node.parts.size() ? task.to : nfa_.add_state();
          work_.push_back({node.parts[i], from, to});
          from = to;
        }
        return true;
      }
      case Rules::Kind::either:
        for (const Part part : node.parts) work_.push_back({part, task.from, task.to});
        return true;
      case Rules::Kind::repeat: return write_repeat(task, node);
      case Rules::Kind::lexeme:
        return node.counts.is_free() && write_lexeme(task, *rules_.lexemes_[node.index].dfa);
      case Rules::Kind::reference:
      case Rules::Kind::object:
      case Rules::Kind::array:
      case Rules::Kind::token:
      case Rules::Kind::token_except:
      case Rules::Kind::free_text: return false;
    }
    return false;
  }

  void write_literal(const Task& task, std::string_view text) {
    std::uint32_t from = task.from;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(text[i]);
      const std::uint32_t to = i + 1 == text.size() ? task.to : nfa_.add_state();
      nfa_.add_edge(from, {byte, byte}, to);
      from = to;
    }
  }

  void write_ranges(const Task& task, const ByteRanges& ranges) {
    std::uint32_t from = task.from;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::uint32_t to = i + 1 == ranges.size() ? task.to : nfa_.add_state(/*inside=*/true);
      nfa_.add_edge(from, ranges[i], to);
      from = to;
    }
  }

  bool write_lexeme(const Task& task, const Dfa& dfa) {
    std::vector<std::uint32_t> states(dfa.size());
    for (std::uint32_t i = 0; i < dfa.size(); ++i) states[i] = nfa_.add_state(dfa.state(i).inside);
    for (std::uint32_t i = 0; i < dfa.size(); ++i) {
      for (const DfaEdge& edge : dfa.edges(i))
        nfa_.add_edge(states[i], {edge.first, edge.last}, states[edge.to]);
      if (dfa.state(i).accepts) nfa_.add_jump(states[i], task.to);
    }
    nfa_.add_jump(task.from, states[0]);
    return true;
  }

  bool write_repeat(const Task& task, const Rules::Node& node) {
    const bool endless = node.counts.max == Counts::unbounded;
    const std::uint32_t copies = endless ? node.counts.min : node.counts.max;
    if (copies > max_states_) return false;
    std::uint32_t from = task.from;
    for (std::uint32_t i = 0; i < copies; ++i) {
      const std::uint32_t to = nfa_.add_state();
      if (i >= node.counts.min) nfa_.add_jump(from, task.to);
      work_.push_back({node.parts[0], from, to});
      from = to;
    }
    if (endless) {
      const std::uint32_t loop = nfa_.add_state();
      nfa_.add_jump(from, loop);
      work_.push_back({node.parts[0], loop, loop});
      from = loop;
    }
    nfa_.add_jump(from, task.to);
    return true;
  }

  const Rules& rules_;
  Budget& budget_;
  std::size_t max_states_;
  Nfa nfa_;
  std::vector<Task> work_;
};

std::optional<Dfa> automaton_of(const Rules& rules, Part part, Budget& budget, std::size_t max_states) {
  const auto nfa = NfaWriter(rules, budget, max_states).run(part);
  return nfa ? determinize(*nfa, budget, max_states) : std::nullopt;
}

}  // namespace inferno::grammar
