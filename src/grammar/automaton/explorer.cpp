#include "grammar/automaton/explorer.h"

#include <fmt/format.h>

#include <algorithm>

namespace inferno::grammar {
namespace {

constexpr std::size_t max_frames = 20'000;  // of one configuration

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(const Explorer::Frame& frame) {
  return mix(mix(std::uint64_t{frame.state} << 32 | frame.count, frame.keys), frame.parent);
}

}  // namespace

Explorer::Explorer(const Machine& machine, TokenReach reach) : machine_(machine), reach_(reach) {
  for (std::size_t byte = 0; byte < 256; ++byte)
    last_alike_[machine.class_of[byte]] = static_cast<std::uint8_t>(byte);
  frame_slots_.assign(1024, 0);
  configuration_slots_.assign(1024, 0);
  frames_.push_back({});  // bottom
  canonical_frames_.push_back(bottom);
  stamps_.push_back(0);
  key_texts_.resize(2);  // the empty text, and `forgotten`
  key_sets_.resize(2);   // the empty set, and `forgotten`
  key_set_ids_.emplace(key_sets_[0], 0);
  has_keys_ = std::ranges::any_of(machine.rules, &Machine::RuleInfo::is_key);
  found_.clear();
  intern_members();  // dead
}

Explorer::Id Explorer::start() {
  ++stamp_;
  found_.clear();
  may_end_ = false;
  enter({machine_.rules[0].start, 0, 0, bottom});
  close();
  return intern_members();
}

bool Explorer::fits(std::uint32_t state, std::uint32_t count) const {
  const Machine::State& s = machine_.states[state];
  const Counts& counts = machine_.rules[s.rule].counts;
  if (counts.max != Counts::unbounded && std::uint64_t{count} + s.need > counts.max) return false;
  return s.reach == Counts::unbounded || std::uint64_t{count} + s.reach >= counts.min;
}

// Whether a key that has not appeared yet can follow, where the set of keys is finite.
bool Explorer::has_keys_left(const Frame& frame) const {
  const Machine::State& state = machine_.states[frame.state];
  if (state.keys_below != Counts::unbounded && key_sets_[frame.keys].size() >= state.keys_below) return false;
  if (state.reach == Counts::unbounded || !machine_.rules[state.rule].is_key || state.is_final) return true;
  std::uint32_t used = 0;
  std::vector<std::uint8_t> rest;
  for (std::uint32_t key : key_sets_[frames_[frame.parent].keys]) {
    rest.clear();
    for (; key_texts_[key].length > key_texts_[frame.keys].length; key = key_texts_[key].parent)
      rest.push_back(key_texts_[key].byte);
    if (key == frame.keys && leads_to_end(frame.state, rest)) ++used;
  }
  return used < state.reach;
}

// `rest` backwards, through the states of a key, which are deterministic.
bool Explorer::leads_to_end(std::uint32_t state, const std::vector<std::uint8_t>& rest) const {
  for (auto byte = rest.rbegin(); byte != rest.rend(); ++byte) {
    const auto edges = machine_.edges_of(machine_.states[state]);
    const auto edge =
        std::ranges::find_if(edges, [byte](const auto& e) { return e.first <= *byte && *byte <= e.last; });
    if (edge == edges.end()) return false;
    state = edge->to;
  }
  return machine_.states[state].is_final;
}

// Puts a frame on the list of those to be followed, unless it is there or its counter cannot end well.
void Explorer::enter(const Frame& frame) {
  if (!fits(frame.state, frame.count) || !has_keys_left(frame)) return;
  const std::uint32_t id = intern(frame);
  if (stamps_[id] == stamp_) return;
  stamps_[id] = stamp_;
  work_.push_back(id);
}

// Follows everything that costs no byte.
void Explorer::close() {
  while (!work_.empty()) {
    const std::uint32_t id = work_.back();
    work_.pop_back();
    const Frame frame = frames_[id];
    const Machine::State& state = machine_.states[frame.state];
    if (state.first_edge != state.last_edge || state.first_token != state.last_token) found_.push_back(id);
    if (found_.size() > max_frames)
      refuse(RefusalKind::limit,
             fmt::format("the text can be read in more than {} ways (limit {})", max_frames, max_frames));
    if (state.is_final && frame.count >= machine_.rules[state.rule].counts.min) leave(frame);
    for (const Machine::Jump& jump : machine_.jumps_of(state)) {
      const std::uint32_t count = frame.count + (jump.ticks ? 1 : 0);
      if (jump.rule == Machine::none) {
        enter({jump.to, count, frame.keys, frame.parent});
        continue;
      }
      if (!fits(jump.to, count)) continue;
      const std::uint32_t parent = machine_.states[jump.to].only_returns
                                       ? frame.parent
                                       : intern({jump.to, count, frame.keys, frame.parent});
      enter({machine_.rules[jump.rule].start, 0, frame.keys == forgotten ? forgotten : 0, parent});
    }
  }
}

void Explorer::leave(const Frame& frame) {
  if (frame.parent == bottom) {
    may_end_ = true;
    return;
  }
  Frame parent = frames_[frame.parent];
  if (machine_.rules[machine_.states[frame.state].rule].is_key && !add_key(parent.keys, frame.keys)) return;
  enter(parent);
}

Explorer::Id Explorer::compute_step(Id from, std::uint8_t byte) {
  const bool reads_key = configurations_[from].reads_key;
  const std::uint64_t key_step = std::uint64_t{from} << 8 | byte;
  if (reads_key)
    if (const auto known = key_steps_.find(key_step); known != key_steps_.end()) return known->second;
  if (bytes() > max_bytes)
    refuse(RefusalKind::limit, fmt::format("following the constraint needs more than {} MiB (limit {} MiB)",
                                           max_bytes >> 20, max_bytes >> 20));
  ++stamp_;
  found_.clear();
  may_end_ = false;
  const std::uint32_t count = configurations_[from].count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Frame frame = frames_[members_[configurations_[from].first + i]];
    const Machine::State& state = machine_.states[frame.state];
    for (const Machine::Edge& edge : machine_.edges_of(state)) {
      if (byte < edge.first || edge.last < byte) continue;
      const std::uint32_t keys = machine_.rules[state.rule].is_key ? key_child(frame.keys, byte) : frame.keys;
      enter({edge.to, frame.count + (edge.ticks ? 1 : 0), keys, frame.parent});
    }
  }
  close();
  const Id to = intern_members();
  if (reads_key)
    key_steps_.emplace(key_step, to);
  else
    next_[std::size_t{from} * machine_.classes + machine_.class_of[byte]] = to;
  return to;
}

Explorer::Id Explorer::step_token(Id from, TokenId token, bool ordinary) {
  if (machine_.token_edges.empty()) return dead;
  ++stamp_;
  found_.clear();
  may_end_ = false;
  const std::uint32_t count = configurations_[from].count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Frame frame = frames_[members_[configurations_[from].first + i]];
    for (const Machine::TokenEdge& edge : machine_.tokens_of(machine_.states[frame.state])) {
      const bool named = std::ranges::binary_search(machine_.token_sets[edge.ids], token);
      if (edge.except ? ordinary && !named : named) enter({edge.to, frame.count, frame.keys, frame.parent});
    }
  }
  close();
  return intern_members();
}

Explorer::Id Explorer::either(Id a, Id b) {
  if (a == dead || a == b) return b;
  if (b == dead) return a;
  found_.assign(frames(a).begin(), frames(a).end());
  found_.insert(found_.end(), frames(b).begin(), frames(b).end());
  may_end_ = may_end(a) || may_end(b);
  return intern_members();
}

Explorer::Id Explorer::only(std::span<const std::uint32_t> frames) {
  found_.assign(frames.begin(), frames.end());
  may_end_ = false;
  return intern_members();
}

// Where a configuration is, or where it belongs.
std::size_t Explorer::configuration_slot(bool may_end, std::span<const std::uint32_t> members) const {
  std::uint64_t hash = may_end ? 1 : 0;
  for (const std::uint32_t id : members) hash = mix(hash, id);
  const std::size_t mask = configuration_slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (configuration_slots_[slot] == 0) return slot;
    const Id id = configuration_slots_[slot] - 1;
    if (this->may_end(id) == may_end && std::ranges::equal(frames(id), members)) return slot;
  }
}

void Explorer::grow_configuration_table() {
  configuration_slots_.assign(configuration_slots_.size() * 2, 0);
  for (Id id = 0; id < configurations_.size(); ++id)
    configuration_slots_[configuration_slot(may_end(id), frames(id))] = id + 1;
}

// The frames in found_ and may_end_ as a configuration.
Explorer::Id Explorer::intern_members() {
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  if (configurations_.size() * 2 > configuration_slots_.size()) grow_configuration_table();
  const std::size_t slot = configuration_slot(may_end_, found_);
  if (configuration_slots_[slot] != 0) return configuration_slots_[slot] - 1;
  const auto id = static_cast<Id>(configurations_.size());
  configurations_.push_back({.first = static_cast<std::uint32_t>(members_.size()),
                             .count = static_cast<std::uint32_t>(found_.size()),
                             .may_end = may_end_,
                             .reads_key = std::ranges::any_of(found_, [this](std::uint32_t frame) {
                               return !is_independent_of_text(frames_[frame]);
                             })});
  members_.insert(members_.end(), found_.begin(), found_.end());
  next_.resize(next_.size() + machine_.classes, unknown);
  if (id == dead) std::ranges::fill(next_, dead);
  configuration_slots_[slot] = id + 1;
  return id;
}

std::uint32_t Explorer::intern(const Frame& frame) {
  if (frames_.size() * 2 > frame_slots_.size()) grow_frame_table();
  const std::size_t mask = frame_slots_.size() - 1;
  std::size_t slot = hash_of(frame) & mask;
  while (frame_slots_[slot] != 0) {
    if (frames_[frame_slots_[slot]] == frame) return frame_slots_[slot];
    slot = (slot + 1) & mask;
  }
  const auto id = static_cast<std::uint32_t>(frames_.size());
  frame_slots_[slot] = id;
  frames_.push_back(frame);
  canonical_frames_.push_back(Machine::none);
  stamps_.push_back(0);
  return id;
}

void Explorer::grow_frame_table() {
  if (bytes() > max_bytes)
    refuse(RefusalKind::limit, fmt::format("following the constraint needs more than {} MiB (limit {} MiB)",
                                           max_bytes >> 20, max_bytes >> 20));
  frame_slots_.assign(frame_slots_.size() * 2, 0);
  const std::size_t mask = frame_slots_.size() - 1;
  for (std::uint32_t id = 1; id < frames_.size(); ++id) {
    std::size_t slot = hash_of(frames_[id]) & mask;
    while (frame_slots_[slot] != 0) slot = (slot + 1) & mask;
    frame_slots_[slot] = id;
  }
}

std::size_t Explorer::bytes() const {
  return frames_.size() * (sizeof(Frame) + 8) + frame_slots_.size() * 4 +
         configurations_.size() * sizeof(Configuration) + configuration_slots_.size() * 4 +
         members_.size() * 4 + next_.size() * 4 + key_texts_.size() * 64 + key_sets_.size() * 96 +
         key_steps_.size() * 32;
}

std::uint32_t Explorer::key_child(std::uint32_t text, std::uint8_t byte) {
  if (text == forgotten) return forgotten;
  const auto [at, is_new] = key_children_.try_emplace(std::uint64_t{text} << 8 | byte,
                                                      static_cast<std::uint32_t>(key_texts_.size()));
  if (is_new) key_texts_.push_back({text, key_texts_[text].length + 1, byte});
  return at->second;
}

bool Explorer::add_key(std::uint32_t& set, std::uint32_t text) {
  if (text == forgotten) return true;
  std::vector<std::uint32_t> keys = key_sets_[set];
  const auto at = std::ranges::lower_bound(keys, text);
  if (at != keys.end() && *at == text) return false;
  keys.insert(at, text);
  const auto [known, is_new] =
      key_set_ids_.try_emplace(std::move(keys), static_cast<std::uint32_t>(key_sets_.size()));
  if (is_new) key_sets_.push_back(known->first);
  set = known->second;
  return true;
}

bool Explorer::begins_a_key(std::uint32_t set, std::uint32_t text) const {
  for (std::uint32_t key : key_sets_[set]) {
    while (key_texts_[key].length > key_texts_[text].length) key = key_texts_[key].parent;
    if (key == text) return true;
  }
  return false;
}

std::uint32_t Explorer::forgetful_frame(std::uint32_t id) {
  std::vector<std::uint32_t> path;
  std::uint32_t parent = bottom;
  for (; id != bottom; id = frames_[id].parent) {
    const auto known = forgetful_frames_.find(id);
    if (known != forgetful_frames_.end()) {
      parent = known->second;
      break;
    }
    path.push_back(id);
  }
  for (; !path.empty(); path.pop_back()) {
    Frame frame = frames_[path.back()];
    frame.keys = forgotten;
    frame.parent = parent;
    parent = intern(frame);
    forgetful_frames_.emplace(path.back(), parent);
  }
  return parent;
}

Explorer::Id Explorer::forget_keys(Id id) {
  if (!has_keys_) return id;
  std::vector<std::uint32_t> members(frames(id).begin(), frames(id).end());
  for (std::uint32_t& member : members) member = forgetful_frame(member);
  return only(members);
}

bool Explorer::has_used_keys(Id id) const {
  for (std::uint32_t frame : frames(id))
    for (; frame != bottom; frame = frames_[frame].parent)
      if (!machine_.rules[state_of(frame).rule].is_key && frames_[frame].keys > forgotten) return true;
  return false;
}

std::vector<std::string> Explorer::repeated_keys(Id id) const {
  std::vector<std::string> found;
  for (const std::uint32_t member : frames(id)) {
    const Frame& frame = frames_[member];
    if (is_independent_of_text(frame)) continue;
    for (std::uint32_t key : key_sets_[frames_[frame.parent].keys]) {
      std::string rest;
      for (; key_texts_[key].length > key_texts_[frame.keys].length; key = key_texts_[key].parent)
        rest += static_cast<char>(key_texts_[key].byte);
      if (key == frame.keys) found.emplace_back(rest.rbegin(), rest.rend());
    }
  }
  return found;
}

// A counter that no single token can bring near a bound is as good as any other such counter, and so is the
// beginning of a key that cannot become one of its object.
Explorer::Frame Explorer::canonical_fields(const Frame& frame) const {
  Frame result = frame;
  const Machine::RuleInfo& rule = machine_.rules[machine_.states[frame.state].rule];
  const std::uint64_t count = std::uint64_t{frame.count} + reach_.longest;
  const bool far_from_max = rule.counts.max == Counts::unbounded || count + rule.max_need < rule.counts.max;
  if (count + rule.max_reach < rule.counts.min)
    result.count = 0;
  else if (frame.count > rule.counts.min && far_from_max)
    result.count = rule.counts.min;
  if (rule.is_key && frame.keys > forgotten && key_texts_[frame.keys].length > reach_.longest_key &&
      !begins_a_key(frames_[frame.parent].keys, frame.keys))
    result.keys = forgotten;
  return result;
}

std::uint32_t Explorer::canonical_frame(std::uint32_t id) {
  std::vector<std::uint32_t> path;
  while (canonical_frames_[id] == Machine::none) {
    path.push_back(id);
    id = frames_[id].parent;
  }
  for (; !path.empty(); path.pop_back()) {
    const std::uint32_t at = path.back();
    Frame fields = canonical_fields(frames_[at]);
    fields.parent = canonical_frames_[frames_[at].parent];
    const std::uint32_t result = intern(fields);
    canonical_frames_[result] = result;
    canonical_frames_[at] = result;
    id = at;
  }
  return canonical_frames_[id];
}

Explorer::Id Explorer::canonical(Id id) {
  if (configurations_[id].canonical != unknown) return configurations_[id].canonical;
  found_.clear();
  const std::vector<std::uint32_t> members(frames(id).begin(), frames(id).end());
  for (const std::uint32_t frame : members) found_.push_back(canonical_frame(frame));
  may_end_ = may_end(id);
  const Id result = intern_members();
  configurations_[result].canonical = result;
  configurations_[id].canonical = result;
  return result;
}

std::string Explorer::signature(Id id, std::size_t max) const {
  std::vector<std::string> stacks;
  std::size_t size = 0;
  for (std::uint32_t frame : frames(id)) {
    std::string& stack = stacks.emplace_back();
    for (; frame != bottom; frame = frames_[frame].parent) {
      const Frame& fields = frames_[frame];
      if (fields.keys > forgotten) return {};
      const std::uint32_t words[] = {fields.state, fields.count, fields.keys};
      stack.append(reinterpret_cast<const char*>(words), sizeof(words));
    }
    size += stack.size();
    if (size > max) return {};
  }
  // The numbers of frames, and so their order, differ between explorers.
  std::ranges::sort(stacks);
  std::string out(may_end(id) ? "+" : "-");
  for (const std::string& stack : stacks) {
    const auto length = static_cast<std::uint32_t>(stack.size());
    out.append(reinterpret_cast<const char*>(&length), sizeof(length));
    out += stack;
  }
  return out;
}

std::uint32_t Explorer::import_text(const Explorer& other, std::uint32_t text) {
  if (text <= forgotten) return text;
  std::vector<std::uint8_t> bytes;
  for (; text != 0; text = other.key_texts_[text].parent) bytes.push_back(other.key_texts_[text].byte);
  for (; !bytes.empty(); bytes.pop_back()) text = key_child(text, bytes.back());
  return text;
}

std::uint32_t Explorer::import_keys(const Explorer& other, const Frame& frame) {
  if (frame.keys == 0) return 0;
  if (machine_.rules[machine_.states[frame.state].rule].is_key) return import_text(other, frame.keys);
  std::uint32_t set = 0;
  for (const std::uint32_t key : other.key_sets_[frame.keys]) add_key(set, import_text(other, key));
  return set;
}

std::uint32_t Explorer::import_frame(const Explorer& other, std::uint32_t id) {
  std::vector<std::uint32_t> path;
  for (; id != bottom; id = other.frames_[id].parent) path.push_back(id);
  std::uint32_t parent = bottom;
  for (; !path.empty(); path.pop_back()) {
    Frame frame = other.frames_[path.back()];
    frame.keys = import_keys(other, frame);
    frame.parent = parent;
    parent = intern(frame);
  }
  return parent;
}

Explorer::Id Explorer::import(const Explorer& other, Id id) {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t frame : other.frames(id)) found.push_back(import_frame(other, frame));
  found_ = std::move(found);
  may_end_ = other.may_end(id);
  return intern_members();
}

}  // namespace inferno::grammar
