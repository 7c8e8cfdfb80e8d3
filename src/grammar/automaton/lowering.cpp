// From parts to the states of a machine: Thompson's construction, with a rule of its own for everything that
// needs a frame (references, lexemes, objects, arrays, counted repeats).
#include <algorithm>
#include <bitset>
#include <map>

#include "grammar/automaton/analysis.h"
#include "grammar/automaton/machine.h"

namespace inferno::grammar {
namespace {

constexpr std::uint32_t max_copies = 64;  // states a short repeat of single characters may cost

bool covers(const Machine& machine, std::uint32_t from, ByteRange range, std::uint32_t& to) {
  for (const Machine::Edge& edge : machine.edges_of(machine.states[from])) {
    if (edge.first > range.first || edge.last < range.last) continue;
    to = edge.to;
    return true;
  }
  return false;
}

// The characters for which is_plain() holds.
const std::vector<ByteRanges>& plain_characters() {
  static const std::vector<ByteRanges> sequences = byte_sequences(
      CharacterSet{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0x2027}, {0x202A, last_code_point}},
      TextForm::plain);
  return sequences;
}
// The characters for which is_word() holds.
const std::vector<ByteRanges>& word_characters() {
  static const std::vector<ByteRanges> sequences =
      byte_sequences(CharacterSet{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, TextForm::plain);
  return sequences;
}

// Collects where the texts of these ranges lead. False if some of them lead nowhere. Edges of automata are
// sorted; those of other states need not be, and are then not recognized.
bool find_ends(const Machine& machine, std::uint32_t state, std::span<const ByteRange> ranges,
               std::vector<std::uint32_t>& ends) {
  if (ranges.empty()) {
    if (std::ranges::find(ends, state) == ends.end()) ends.push_back(state);
    return true;
  }
  int next = ranges[0].first;
  for (const Machine::Edge& edge : machine.edges_of(machine.states[state])) {
    if (edge.last < next || edge.first > ranges[0].last) continue;
    if (edge.first > next || !find_ends(machine, edge.to, ranges.subspan(1), ends)) return false;
    next = edge.last + 1;
  }
  return next > ranges[0].last;
}

// Whether every plain character leads from the state back to it.
bool loops_on_text(const Machine& machine, std::uint32_t state) {
  for (const ByteRanges& ranges : plain_characters()) {
    std::uint32_t at = state;
    // All bytes of a first range must behave alike; they do unless a class cuts through.
    for (const ByteRange& range : ranges)
      if (!covers(machine, at, range, at)) return false;
    if (at != state) return false;
  }
  return true;
}

}  // namespace

class Lowering {
 public:
  Lowering(Rules& rules, const Analysis& analysis, Budget& budget)
      : rules_(rules), analysis_(analysis), budget_(budget), rule_of_reference_(rules.rules_.size(), none) {}

  Machine run(Part root) {
    machine_.token_sets = rules_.tokens_;
    add_rule({});
    const std::uint32_t start = add_state(0);
    const std::uint32_t end = add_state(0);
    machine_.rules[0].start = start;
    building_[end].state.is_final = true;
    push(root, start, end);
    while (!work_.empty()) {
      const Task task = work_.back();
      work_.pop_back();
      lower(task);
    }
    finish();
    return std::move(machine_);
  }

 private:
  static constexpr std::uint32_t none = Machine::none;
  struct Task {
    Part part{};
    std::uint32_t from = 0, to = 0;
    bool ticks = false;  // of a single character
  };
  struct Building {
    Machine::State state;
    std::vector<Machine::Edge> edges;
    std::vector<Machine::Jump> jumps;
    std::vector<Machine::TokenEdge> tokens;
  };
  // Ticks still to come, for the states of a counted rule.
  struct Outlook {
    std::uint32_t need = 0;
    std::uint32_t reach = Counts::unbounded;
  };

  std::uint32_t add_rule(Counts counts, bool is_key = false) {
    machine_.rules.push_back({.start = 0, .counts = counts, .is_key = is_key});
    return static_cast<std::uint32_t>(machine_.rules.size() - 1);
  }
  std::uint32_t add_state(std::uint32_t rule) { return add_state(rule, Outlook{}); }
  std::uint32_t add_state(std::uint32_t rule, Outlook outlook) {
    budget_.spend(sizeof(Building) + sizeof(Machine::Edge));
    building_.emplace_back();
    building_.back().state.rule = rule;
    building_.back().state.need = outlook.need;
    building_.back().state.reach = outlook.reach;
    return static_cast<std::uint32_t>(building_.size() - 1);
  }
  Outlook outlook_of(std::uint32_t state) const {
    return {building_[state].state.need, building_[state].state.reach};
  }
  std::uint32_t rule_of(std::uint32_t state) const { return building_[state].state.rule; }

  void push(Part part, std::uint32_t from, std::uint32_t to, bool ticks = false) {
    if (analysis_.is_possible(part)) work_.push_back({part, from, to, ticks});
  }
  void jump(std::uint32_t from, std::uint32_t to) { building_[from].jumps.push_back({to, none, false}); }
  void call(std::uint32_t from, std::uint32_t rule, std::uint32_t to, bool ticks = false) {
    building_[from].jumps.push_back({to, rule, ticks});
  }
  void edge(std::uint32_t from, std::uint8_t first, std::uint8_t last, std::uint32_t to, bool ticks = false) {
    building_[from].edges.push_back({first, last, ticks, to});
  }
  void edge(std::uint32_t from, char byte, std::uint32_t to) {
    edge(from, static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), to);
  }
  void chain(std::uint32_t from, std::string_view text, std::uint32_t to, bool ticks = false) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::uint32_t next = i + 1 == text.size() ? to : add_state(rule_of(from), outlook_of(to));
      const auto byte = static_cast<std::uint8_t>(text[i]);
      edge(from, byte, byte, next, ticks && i == 0);
      from = next;
    }
  }
  void blanks(std::uint32_t from, std::uint32_t to) { push(rules_.blanks(), from, to); }

  void lower(const Task& task) {
    const Rules::Node& node = rules_.node(task.part);
    budget_.spend(0);
    switch (node.kind) {
      case Rules::Kind::never: break;
      case Rules::Kind::empty: jump(task.from, task.to); break;
      case Rules::Kind::literal: chain(task.from, rules_.literals_[node.index], task.to, task.ticks); break;
      case Rules::Kind::characters: lower_characters(task, node); break;
      case Rules::Kind::sequence: lower_sequence(task, node); break;
      case Rules::Kind::either:
        for (const Part part : node.parts) push(part, task.from, task.to);
        break;
      case Rules::Kind::repeat: lower_repeat(task, node); break;
      case Rules::Kind::reference: call(task.from, reference(node.index), task.to); break;
      case Rules::Kind::lexeme: call(task.from, lexeme(task.part), task.to); break;
      case Rules::Kind::object: call(task.from, object(task.part), task.to); break;
      case Rules::Kind::array: call(task.from, array(task.part), task.to); break;
      case Rules::Kind::token:
      case Rules::Kind::token_except:
        building_[task.from].tokens.push_back({node.index, node.kind == Rules::Kind::token_except, task.to});
        break;
      case Rules::Kind::free_text: {
        const std::uint32_t loop = add_state(rule_of(task.from), outlook_of(task.to));
        jump(task.from, loop);
        edge(loop, 0, 255, loop);
        building_[loop].state.is_free = true;
        jump(loop, task.to);
        break;
      }
    }
  }

  void lower_characters(const Task& task, const Rules::Node& node) {
    for (const ByteRanges& ranges : byte_sequences(rules_.sets_[node.index], node.form)) {
      std::uint32_t from = task.from;
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::uint32_t to =
            i + 1 == ranges.size() ? task.to : add_state(rule_of(task.from), outlook_of(task.to));
        edge(from, ranges[i].first, ranges[i].last, to, task.ticks && i == 0);
        from = to;
      }
    }
  }

  void lower_sequence(const Task& task, const Rules::Node& node) {
    std::uint32_t from = task.from;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const std::uint32_t to =
          i + 1 == node.parts.size() ? task.to : add_state(rule_of(task.from), outlook_of(task.to));
      push(node.parts[i], from, to);
      from = to;
    }
  }

  bool is_character(Part part) const {
    const Rules::Node& node = rules_.node(part);
    return node.kind == Rules::Kind::characters ||
           (node.kind == Rules::Kind::literal && rules_.literals_[node.index].size() == 1);
  }

  void lower_repeat(const Task& task, const Rules::Node& node) {
    const Part body = node.parts[0];
    if (!analysis_.is_possible(body)) return jump(task.from, task.to);  // at least zero times, or not here
    const Counts counts = node.counts;
    const bool endless = counts.max == Counts::unbounded;
    if (counts.min <= 1 && endless) return lower_endless(task, body, counts.min);
    if (counts.max == 1) {
      jump(task.from, task.to);
      return push(body, task.from, task.to);
    }
    const std::uint32_t copies = endless ? counts.min : counts.max;
    if (is_character(body) && copies <= max_copies / (rules_.node(body).form == TextForm::plain ? 4 : 8))
      return lower_copies(task, body, counts);
    call(task.from, counted(task.part), task.to);
  }

  void lower_endless(const Task& task, Part body, std::uint32_t min) {
    const std::uint32_t loop = add_state(rule_of(task.from), outlook_of(task.to));
    if (min == 0) {
      jump(task.from, loop);
      push(body, loop, loop);
    } else if (is_character(body)) {
      push(body, task.from, loop);
      push(body, loop, loop);
    } else {
      const std::uint32_t head = add_state(rule_of(task.from), outlook_of(task.to));
      jump(task.from, head);
      push(body, head, loop);
      jump(loop, head);
    }
    jump(loop, task.to);
  }

  void lower_copies(const Task& task, Part body, Counts counts) {
    const bool endless = counts.max == Counts::unbounded;
    const std::uint32_t copies = endless ? counts.min : counts.max;
    std::uint32_t from = task.from;
    for (std::uint32_t i = 0; i < copies; ++i) {
      const std::uint32_t to = add_state(rule_of(task.from), outlook_of(task.to));
      if (i >= counts.min) jump(from, task.to);
      push(body, from, to);
      from = to;
    }
    if (endless) push(body, from, from);
    jump(from, task.to);
  }

  std::uint32_t counted(Part part) {
    const auto [at, is_new] = rule_of_part_.try_emplace(part, 0);
    if (!is_new) return at->second;
    const Rules::Node node = rules_.node(part);
    const std::uint32_t rule = add_rule(node.counts);
    at->second = rule;
    const std::uint32_t head = add_state(rule);
    machine_.rules[rule].start = head;
    building_[head].state.is_final = true;
    if (is_character(node.parts[0])) {
      push(node.parts[0], head, head, /*ticks=*/true);
    } else {
      call(head, wrapped(node.parts[0]), head, /*ticks=*/true);
    }
    return rule;
  }

  // A rule of its own for any part, so that the frame that calls it can count.
  std::uint32_t wrapped(Part part) {
    const auto [at, is_new] = wrapped_.try_emplace(part, 0);
    if (!is_new) return at->second;
    at->second = body_rule(part);
    return at->second;
  }

  std::uint32_t body_rule(Part body) {
    const std::uint32_t rule = add_rule({});
    const std::uint32_t start = add_state(rule);
    const std::uint32_t end = add_state(rule);
    machine_.rules[rule].start = start;
    building_[end].state.is_final = true;
    push(body, start, end);
    return rule;
  }

  std::uint32_t reference(std::uint32_t index) {
    std::uint32_t& rule = rule_of_reference_[index];
    if (rule == none) {
      const std::uint32_t made = body_rule(rules_.rules_[index].body);
      rule = made;
    }
    return rule;
  }

  std::uint32_t lexeme(Part part) {
    const auto [at, is_new] = rule_of_part_.try_emplace(part, 0);
    if (!is_new) return at->second;
    const Rules::Node& node = rules_.node(part);
    at->second = automaton(*rules_.lexemes_[node.index].dfa, node.counts, rules_.lexemes_[node.index].lengths,
                           /*is_key=*/false);
    return at->second;
  }

  std::uint32_t automaton(const Dfa& dfa, Counts counts, const SharedLengths& lengths, bool is_key) {
    const std::uint32_t rule = add_rule(counts, is_key);
    const bool counted = !counts.is_free();
    const auto keys = is_key ? numbers_of_texts(dfa) : std::vector<std::uint32_t>();
    const auto first = static_cast<std::uint32_t>(building_.size());
    machine_.rules[rule].start = first;
    for (std::uint32_t i = 0; i < dfa.size(); ++i) {
      const std::uint32_t state =
          add_state(rule, counted ? Outlook{(*lengths)[i].shortest, (*lengths)[i].longest} : Outlook{});
      if (is_key) building_[state].state.reach = keys[i];
      building_[state].state.is_final = dfa.state(i).accepts;
      for (const DfaEdge& each : dfa.edges(i)) {
        const bool ticks = counted && !dfa.state(i).inside && each.first != '"';
        edge(state, each.first, each.last, first + each.to, ticks);
      }
    }
    return rule;
  }

  std::uint32_t object(Part part);
  std::uint32_t array(Part part);
  void close(std::uint32_t from, char bracket, std::uint32_t done);
  void property(const ObjectParts::Property& property, std::uint32_t from, std::uint32_t to);
  void undeclared(const ObjectParts::Undeclared& undeclared, std::uint32_t from, std::uint32_t to);
  static std::uint32_t number_of_keys(const std::vector<ObjectParts::Undeclared>& undeclared);
  void finish();
  void find_reach(const std::vector<ByteRanges>& characters, std::uint32_t Machine::State::* reach);
  void find_returns();
  void classify_bytes();

  Rules& rules_;
  const Analysis& analysis_;
  Budget& budget_;
  Machine machine_;
  std::vector<Building> building_;
  std::vector<Task> work_;
  std::map<Part, std::uint32_t> rule_of_part_;
  std::map<Part, std::uint32_t> wrapped_;
  std::map<const Dfa*, std::uint32_t> key_rules_;
  std::vector<std::uint32_t> rule_of_reference_;
};

// Blanks and the bracket, if the counter may stop here.
void Lowering::close(std::uint32_t from, char bracket, std::uint32_t done) {
  const std::uint32_t before = add_state(rule_of(from), {0, 0});
  const std::uint32_t after = add_state(rule_of(from), {0, 0});
  jump(from, before);
  blanks(before, after);
  edge(after, bracket, done);
}

void Lowering::property(const ObjectParts::Property& property, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t colon = add_state(rule_of(from), outlook_of(to));
  const std::uint32_t value = add_state(rule_of(from), outlook_of(to));
  chain(from, property.key + ":", colon, /*ticks=*/true);
  blanks(colon, value);
  push(property.value, value, to);
}

void Lowering::undeclared(const ObjectParts::Undeclared& undeclared, std::uint32_t from, std::uint32_t to) {
  const auto [at, is_new] = key_rules_.try_emplace(undeclared.key.get(), 0);
  if (is_new) at->second = automaton(*undeclared.key, {}, nullptr, /*is_key=*/true);
  const std::uint32_t key = add_state(rule_of(from));
  const std::uint32_t name = add_state(rule_of(from));
  const std::uint32_t colon = add_state(rule_of(from));
  const std::uint32_t value = add_state(rule_of(from));
  edge(from, '"', '"', key, /*ticks=*/true);
  call(key, at->second, name);
  edge(name, ':', colon);
  blanks(colon, value);
  push(undeclared.value, value, to);
}

// All keys that may come without being declared.
std::uint32_t Lowering::number_of_keys(const std::vector<ObjectParts::Undeclared>& undeclared) {
  std::uint64_t total = 0;
  for (const auto& each : undeclared) total += numbers_of_texts(*each.key)[0];
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, Counts::unbounded));
}

std::uint32_t Lowering::object(Part part) {
  const auto [at, is_new] = rule_of_part_.try_emplace(part, 0);
  if (!is_new) return at->second;
  ObjectParts parts = rules_.objects_[rules_.node(part).index];
  std::erase_if(parts.properties, [this](const auto& p) { return !analysis_.is_possible(p.value); });
  std::erase_if(parts.undeclared, [this](const auto& u) { return !analysis_.is_possible(u.value); });
  const auto count = static_cast<std::uint32_t>(parts.properties.size());
  const bool more = !parts.undeclared.empty();
  // required[i]: of the properties from i on.
  std::vector<std::uint32_t> required(count + 1, 0);
  for (std::uint32_t i = count; i > 0; --i)
    required[i - 1] = required[i] + (parts.properties[i - 1].required ? 1 : 0);
  Counts counts = parts.counts;
  if (counts.min <= required[0]) counts.min = 0;
  if (!more && counts.max >= count) counts.max = Counts::unbounded;
  const std::uint32_t rule = add_rule(counts);
  at->second = rule;
  const auto outlook = [&](std::uint32_t i) {
    return Outlook{required[i], more ? Counts::unbounded : count - i};
  };
  const std::uint32_t start = add_state(rule, outlook(0));
  const std::uint32_t open = add_state(rule, outlook(0));
  const std::uint32_t first = add_state(rule, outlook(0));
  const std::uint32_t done = add_state(rule, {0, 0});
  machine_.rules[rule].start = start;
  building_[done].state.is_final = true;
  edge(start, '{', open);
  blanks(open, first);
  if (required[0] == 0) edge(first, '}', done);
  // before[i]: a key from i on must come; after[i]: a value has come, keys from i on may.
  std::vector<std::uint32_t> before(count + 1), after(count + 1);
  for (std::uint32_t i = 0; i <= count; ++i) {
    before[i] = add_state(rule, outlook(i));
    after[i] = add_state(rule, outlook(i));
  }
  jump(first, before[0]);
  if (more) building_[before[count]].state.keys_below = number_of_keys(parts.undeclared);
  for (std::uint32_t i = 0; i <= count; ++i) {
    if (required[i] == 0) close(after[i], '}', done);
    if (i == count && !more) break;
    const std::uint32_t comma = add_state(rule, {std::max(1U, required[i]), outlook(i).reach});
    edge(after[i], ',', comma);
    blanks(comma, before[i]);
    if (i == count) building_[comma].state.keys_below = building_[before[i]].state.keys_below;
    if (i == count) break;
    property(parts.properties[i], before[i], after[i + 1]);
    const bool is_last = i + 1 == count && !more;
    if (!parts.properties[i].required && !is_last) jump(before[i], before[i + 1]);
  }
  for (const auto& each : parts.undeclared) undeclared(each, before[count], after[count]);
  return rule;
}

std::uint32_t Lowering::array(Part part) {
  const auto [at, is_new] = rule_of_part_.try_emplace(part, 0);
  if (!is_new) return at->second;
  ArrayParts parts = rules_.arrays_[rules_.node(part).index];
  const auto impossible = [this](Part p) { return !analysis_.is_possible(p); };
  const auto cut = std::ranges::find_if(parts.first, impossible);
  if (cut != parts.first.end() || (parts.rest && impossible(*parts.rest))) parts.rest.reset();
  parts.first.erase(cut, parts.first.end());
  if (parts.first.size() >= parts.counts.max) {
    parts.first.resize(parts.counts.max);
    parts.rest.reset();
  }
  const auto fixed = static_cast<std::uint32_t>(parts.first.size());
  Counts counts = parts.counts;
  const bool counted = parts.rest && (counts.min > fixed || counts.max != Counts::unbounded);
  const std::uint32_t rule = add_rule(counted ? counts : Counts{});
  at->second = rule;
  const std::uint32_t start = add_state(rule);
  const std::uint32_t open = add_state(rule);
  const std::uint32_t first = add_state(rule);
  const std::uint32_t done = add_state(rule, {0, 0});
  machine_.rules[rule].start = start;
  building_[done].state.is_final = true;
  edge(start, '[', open);
  blanks(open, first);
  if (counts.min == 0) edge(first, ']', done);
  std::vector<std::uint32_t> before(fixed + 1), after(fixed + 1);
  for (std::uint32_t i = 0; i <= fixed; ++i) {
    before[i] = add_state(rule, {1, Counts::unbounded});
    after[i] = add_state(rule);
  }
  jump(first, before[0]);
  for (std::uint32_t i = 0; i <= fixed; ++i) {
    if ((i > 0 || parts.rest) && (counted || i >= counts.min)) close(after[i], ']', done);
    if (i == fixed && !parts.rest) break;
    const std::uint32_t comma = add_state(rule, {1, Counts::unbounded});
    edge(after[i], ',', comma);
    blanks(comma, before[i]);
    const Part item = i == fixed ? *parts.rest : parts.first[i];
    const std::uint32_t to = i == fixed ? after[i] : after[i + 1];
    if (counted)
      call(before[i], wrapped(item), to, /*ticks=*/true);
    else
      push(item, before[i], to);
  }
  return rule;
}

void Lowering::finish() {
  machine_.states.reserve(building_.size());
  for (Building& building : building_) {
    Machine::State state = building.state;
    const auto append = [](auto& all, const auto& some, std::uint32_t& first, std::uint32_t& last) {
      first = static_cast<std::uint32_t>(all.size());
      all.insert(all.end(), some.begin(), some.end());
      last = static_cast<std::uint32_t>(all.size());
    };
    append(machine_.edges, building.edges, state.first_edge, state.last_edge);
    append(machine_.jumps, building.jumps, state.first_jump, state.last_jump);
    append(machine_.token_edges, building.tokens, state.first_token, state.last_token);
    machine_.states.push_back(state);
    Machine::RuleInfo& rule = machine_.rules[state.rule];
    rule.max_need = std::max(rule.max_need, state.need);
    if (rule.is_key && !state.is_final && state.reach != Counts::unbounded) machine_.has_few_keys = true;
    if (state.reach != Counts::unbounded) rule.max_reach = std::max(rule.max_reach, state.reach);
  }
  find_returns();
  for (std::uint32_t i = 0; i < machine_.states.size(); ++i)
    machine_.states[i].loops_on_text = loops_on_text(machine_, i);
  find_reach(plain_characters(), &Machine::State::plain_reach);
  find_reach(word_characters(), &Machine::State::word_reach);
  classify_bytes();
}

// How many of these characters each state takes at least: one more than the worst of the states they lead
// to. Found backwards from the states that do not take all of them; those that are not found take any number.
void Lowering::find_reach(const std::vector<ByteRanges>& characters, std::uint32_t Machine::State::* reach) {
  std::vector<std::vector<std::uint32_t>> before(machine_.states.size());
  std::vector<std::uint32_t> found;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 0; i < machine_.states.size(); ++i) {
    Machine::State& state = machine_.states[i];
    ends.clear();
    const bool takes_all =
        state.first_edge != state.last_edge && std::ranges::all_of(characters, [&](const ByteRanges& ranges) {
          return find_ends(machine_, i, ranges, ends);
        });
    state.*reach = takes_all ? Counts::unbounded : 0;
    if (!takes_all) {
      found.push_back(i);
      continue;
    }
    for (const std::uint32_t end : ends) before[end].push_back(i);
    budget_.spend(ends.size() * sizeof(std::uint32_t));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::uint32_t earlier : before[found[i]]) {
      Machine::State& state = machine_.states[earlier];
      if (state.*reach != Counts::unbounded) continue;
      state.*reach = machine_.states[found[i]].*reach + 1;
      found.push_back(earlier);
    }
  }
}

void Lowering::find_returns() {
  const auto returns = [this](const Machine::State& state) {
    const Machine::RuleInfo& rule = machine_.rules[state.rule];
    if (state.first_edge != state.last_edge || state.first_token != state.last_token) return false;
    if (!rule.counts.is_free() || rule.is_key) return false;
    const auto jumps = machine_.jumps_of(state);
    if (state.is_final) return jumps.empty();
    return jumps.size() == 1 && jumps[0].rule == none && machine_.states[jumps[0].to].only_returns;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (Machine::State& state : machine_.states) {
      if (state.only_returns || !returns(state)) continue;
      state.only_returns = changed = true;
    }
    budget_.check_time();
  }
}

void Lowering::classify_bytes() {
  std::bitset<257> cuts;
  cuts.set(0);
  for (const Machine::Edge& each : machine_.edges) {
    cuts.set(each.first);
    cuts.set(each.last + 1U);
  }
  std::uint32_t current = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && cuts[byte]) ++current;
    machine_.class_of[byte] = static_cast<std::uint8_t>(current);
  }
  machine_.classes = current + 1;
}

Machine build_machine(Rules& rules, Part root, Budget& budget) {
  const Analysis analysis(rules, root, budget);
  return Lowering(rules, analysis, budget).run(root);
}

}  // namespace inferno::grammar
