#include "grammar/matcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_time.h"
#include "grammar/masks/text_reach.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t explorer_soft_limit = std::size_t{8} << 20;
constexpr std::size_t mask_soft_limit = std::size_t{4} << 20;
constexpr std::chrono::milliseconds max_mask_time{50};

void set_bit(std::span<std::uint32_t> mask, TokenId token) {
  mask[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
}
bool has_bit(std::span<const std::uint32_t> mask, TokenId token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}
void add(std::span<std::uint32_t> mask, std::span<const std::uint32_t> other) {
  std::uint32_t* to = mask.first(other.size()).data();
  const std::uint32_t* from = other.data();
  for (std::size_t i = 0; i < other.size(); ++i) to[i] |= from[i];
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary,
                 std::shared_ptr<SharedMasks> shared)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      explorer_(std::make_unique<Explorer>(grammar_->machine(), vocabulary_->reach())),
      now_(explorer_->start()),
      shared_(shared ? std::move(shared) : std::make_shared<SharedMasks>()),
      path_(vocabulary_->reach().longest + 1),
      ends_(vocabulary_->reach().longest + 1) {}

Matcher::~Matcher() = default;

std::unique_ptr<Matcher> Matcher::fork() const {
  auto copy = std::make_unique<Matcher>(grammar_, vocabulary_, shared_);
  copy->now_ = copy->explorer_->import(*explorer_, now_);
  return copy;
}

bool Matcher::may_end() const {
  return explorer_->may_end(now_);
}

bool Matcher::is_finished() {
  return may_end() && !explorer_->has_frames(now_);
}

std::size_t Matcher::bytes() const {
  return explorer_->bytes() + mask_bytes_;
}

// What was computed for past states is given up when it grows too large; the answer itself needs little.
void Matcher::keep_within_bounds() {
  if (mask_bytes_ > mask_soft_limit) {
    masks_.clear();
    mask_bytes_ = 0;
  }
  if (explorer_->bytes() < explorer_soft_limit) return;
  auto fresh = std::make_unique<Explorer>(grammar_->machine(), vocabulary_->reach());
  now_ = fresh->import(*explorer_, now_);
  explorer_ = std::move(fresh);
  masks_.clear();
  mask_bytes_ = 0;
}

Explorer::Id Matcher::step(Explorer::Id from, TokenId token) {
  if (token < 0 || token >= vocabulary_->size()) return Explorer::dead;
  const bool ordinary = vocabulary_->is_ordinary(token);
  Explorer::Id to = explorer_->step_token(from, token, ordinary);
  if (!ordinary) return to;
  Explorer::Id at = from;
  for (const char byte : vocabulary_->bytes(token)) at = explorer_->step(at, static_cast<std::uint8_t>(byte));
  return explorer_->either(to, at);
}

bool Matcher::take(TokenId token) {
  keep_within_bounds();
  const Explorer::Id to = step(now_, token);
  if (to == Explorer::dead) return false;
  now_ = to;
  return true;
}

bool Matcher::take_byte(std::uint8_t byte) {
  keep_within_bounds();
  const Explorer::Id to = explorer_->step(now_, byte);
  if (to == Explorer::dead) return false;
  now_ = to;
  return true;
}

void Matcher::fill(std::span<std::uint32_t> mask) {
  keep_within_bounds();
  const Explorer::Id id = explorer_->canonical(now_);
  if (const auto known = masks_.find(id); known != masks_.end())
    return known->second->write_to(*vocabulary_, mask);
  started_ = thread_time();
  // The text of a key matters for the few tokens that could complete a key a second time; those are tried.
  const Explorer::Id without_keys = explorer_->forget_keys(id);
  Mask stored = fill_without_keys(without_keys, mask);
  if (id == without_keys) return;
  if (remove_repeated_keys(id, mask)) stored = std::make_shared<const StoredMask>(*vocabulary_, mask);
  remember(id, stored);
}

Matcher::Mask Matcher::fill_without_keys(Explorer::Id id, std::span<std::uint32_t> mask) {
  const auto known = masks_.find(id);
  Mask stored = known != masks_.end() ? known->second : nullptr;
  const std::string key = stored ? "" : explorer_->signature(id, SharedMasks::max_key);
  if (!key.empty()) stored = shared_->find(key);
  if (stored) {
    stored->write_to(*vocabulary_, mask);
  } else {
    std::ranges::fill(mask, 0);
    compute(id, mask);
    stored = std::make_shared<const StoredMask>(*vocabulary_, mask);
    if (!key.empty()) shared_->add(key, stored);
  }
  remember(id, stored);
  return stored;
}

void Matcher::remember(Explorer::Id id, const Mask& mask) {
  if (masks_.emplace(id, mask).second) mask_bytes_ += mask->bytes() + 64;
}

// Whether there was any.
bool Matcher::remove_repeated_keys(Explorer::Id id, std::span<std::uint32_t> mask) {
  bool removed = false;
  std::uint32_t tried = 0;
  const auto check = [&](std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      if (!has_bit(mask, token)) continue;
      if ((++tried & 0xFF) == 0) check_time();
      if (step(id, token) != Explorer::dead) continue;
      mask[static_cast<std::size_t>(token) / 32] &= ~(std::uint32_t{1} << (token % 32));
      removed = true;
    }
  };
  const bool has_used_keys = explorer_->has_used_keys(id);
  const bool has_few_keys = grammar_->machine().has_few_keys;
  if (has_few_keys) check(vocabulary_->tokens_for_keys());
  check(has_used_keys ? vocabulary_->tokens_with_keys() : vocabulary_->tokens_with_two_keys());
  for (const std::string& rest : explorer_->repeated_keys(id)) {
    check(vocabulary_->beginning_with(rest));
    // What a used key begins with may begin no other.
    if (has_few_keys) check(vocabulary_->prefixes_of(rest));
  }
  return removed;
}

void Matcher::compute(Explorer::Id id, std::span<std::uint32_t> mask) {
  add_token_edges(id, mask);
  for (const std::uint32_t frame : explorer_->frames(id)) {
    if (!explorer_->state_of(frame).is_free) continue;
    return add(mask, vocabulary_->ordinary_mask());
  }
  // What a set of stacks allows is what each of them allows.
  const std::vector<std::uint32_t> frames(explorer_->frames(id).begin(), explorer_->frames(id).end());
  std::vector<std::uint32_t> others;
  for (const std::uint32_t frame : frames)
    if (!add_string_tokens(frame, mask)) others.push_back(frame);
  if (others.empty()) return;
  const Explorer::Id rest = explorer_->only(others);
  const std::uint32_t words = text_reach(*explorer_, rest, word_characters());
  if (words == 0) return walk(rest, vocabulary_->trie(), mask);
  const std::uint32_t plain = text_reach(*explorer_, rest, plain_characters());
  for (const TokenClass& token_class : vocabulary_->classes()) {
    const std::uint32_t taken = token_class.is_word ? words : plain;
    if (token_class.max_characters != 0 && token_class.max_characters <= taken)
      add(mask, token_class.mask);
    else
      walk(rest, token_class.trie, mask);
  }
}

// How many plain characters a frame may take before a tail.
struct Matcher::StringRoom {
  std::uint32_t min = 0;
  std::uint32_t max = Counts::unbounded;
  bool is_far_below = false;  // no token reaches the lower bound
};

// For a frame that every plain character leads back to. False if it is none, or its bounds are too close.
bool Matcher::add_string_tokens(std::uint32_t index, std::span<std::uint32_t> mask) {
  const Explorer::Frame frame = explorer_->frame(index);
  const Machine& machine = grammar_->machine();
  const Machine::State& state = machine.states[frame.state];
  if (!state.loops_on_text || !explorer_->is_independent_of_text(frame)) return false;
  const Counts& counts = machine.rules[state.rule].counts;
  const auto edges = machine.edges_of(state);
  const auto ticks = [](const Machine::Edge& edge) {
    return edge.first <= 'a' && 'a' <= edge.last && edge.ticks;
  };
  if (!counts.is_free() && std::ranges::none_of(edges, ticks)) return false;
  const TokenTails& tails = vocabulary_->tails();
  const bool endless = counts.max == Counts::unbounded;
  const std::uint64_t most = std::uint64_t{counts.max} - std::min(counts.max, state.need);
  if (!endless && std::uint64_t{counts.min} + tails.longest + machine.rules[state.rule].max_need > most)
    return false;
  StringRoom room;
  if (!endless) room.max = frame.count < most ? static_cast<std::uint32_t>(most - frame.count) : 0;
  if (frame.count < counts.min) room.min = counts.min - frame.count;
  room.is_far_below = room.min > vocabulary_->reach().longest + machine.rules[state.rule].max_reach;
  const bool takes_all = vocabulary_->longest_plain() <= room.max;
  if (takes_all) add(mask, vocabulary_->plain_mask());
  for (const TokenClass& token_class : vocabulary_->classes()) {
    if (takes_all) break;
    if (token_class.max_characters == 0) continue;
    if (token_class.max_characters <= room.max) {
      add(mask, token_class.mask);
      continue;
    }
    for (const auto& [characters, token] : token_class.by_length) {
      if (characters > room.max) break;
      set_bit(mask, token);
    }
  }
  // Behind a plain character, so that what may follow without a byte is there, too.
  Explorer::Frame open = frame;
  if (!room.is_far_below) open.count = counts.min;
  add_tails(explorer_->only({&index, 1}), explorer_->step(explorer_->only(open), 'a'), room, mask);
  return true;
}

bool Matcher::accepts(Explorer::Id from, TokenId token) {
  for (const char byte : vocabulary_->bytes(token))
    from = explorer_->step(from, static_cast<std::uint8_t>(byte));
  return from != Explorer::dead;
}

// Tails are followed once, from a counter that is within its bounds; tokens that might meet a bound are tried
// one by one from the counter as it is.
void Matcher::add_tails(Explorer::Id exact, Explorer::Id from, const StringRoom& room,
                        std::span<std::uint32_t> mask) {
  const TokenTails& tails = vocabulary_->tails();
  Explorer::Id* path = path_.data();
  std::uint32_t* ends = ends_.data();
  const auto end = static_cast<std::uint32_t>(tails.trie.size());
  path[0] = from;
  ends[0] = end;
  std::size_t depth = 0;
  for (std::uint32_t at = 0, visited = 0; at < end;) {
    while (ends[depth] <= at) --depth;
    if ((++visited & 0xFFF) == 0) check_time();
    const TrieNode node = tails.trie.data()[at];
    const Explorer::Id to = explorer_->step(path[depth], static_cast<std::uint8_t>(node.byte));
    if (to == Explorer::dead) {
      at += node.size;
      continue;
    }
    if (node.tokens != 0) {
      const std::uint64_t length = depth + 1;
      for (const auto& [characters, token] : tails.tokens_at(node)) {
        if (characters > room.max) continue;
        const bool is_sure = (room.is_far_below || characters >= room.min) &&
                             (room.max == Counts::unbounded || characters + length <= room.max);
        if (is_sure || accepts(exact, token)) set_bit(mask, token);
      }
    }
    if (node.size > 1) {
      ++depth;
      path[depth] = to;
      ends[depth] = at + node.size;
    }
    ++at;
  }
}

void Matcher::add_token_edges(Explorer::Id id, std::span<std::uint32_t> mask) const {
  const Machine& machine = grammar_->machine();
  for (const std::uint32_t frame : explorer_->frames(id)) {
    for (const Machine::TokenEdge& edge : machine.tokens_of(explorer_->state_of(frame))) {
      const std::vector<TokenId>& ids = machine.token_sets[edge.ids];
      if (!edge.except) {
        for (const TokenId token : ids)
          if (token >= 0 && token < vocabulary_->size()) set_bit(mask, token);
        continue;
      }
      std::vector<std::uint32_t> words = vocabulary_->ordinary_mask();
      for (const TokenId token : ids)
        if (token >= 0 && token < vocabulary_->size())
          words[static_cast<std::size_t>(token) / 32] &= ~(std::uint32_t{1} << (token % 32));
      add(mask, words);
    }
  }
}

void Matcher::walk(Explorer::Id id, const std::vector<TrieNode>& trie, std::span<std::uint32_t> mask) {
  // path[d] is where the first d bytes lead; ends[d] is where the subtree of their node ends.
  Explorer::Id* path = path_.data();
  std::uint32_t* ends = ends_.data();
  std::uint32_t* words = mask.first(vocabulary_->mask_words()).data();
  const TrieNode* nodes = trie.data();
  const auto end = static_cast<std::uint32_t>(trie.size());
  const std::size_t classes = explorer_->classes();
  const std::uint8_t* class_of = explorer_->class_of().data();
  const Explorer::Id* table = explorer_->table();
  path[0] = id;
  ends[0] = end;
  std::size_t depth = 0;
  std::uint32_t computed = 0;
  for (std::uint32_t at = 0; at < end;) {
    while (ends[depth] <= at) --depth;
    const TrieNode node = nodes[at];
    Explorer::Id to = table[path[depth] * classes + class_of[node.byte]];
    if (to == Explorer::unknown) {
      if ((++computed & 0xFF) == 0) check_time();
      to = explorer_->step(path[depth], static_cast<std::uint8_t>(node.byte));
      table = explorer_->table();
    }
    if (to == Explorer::dead) {
      at += node.size;
      continue;
    }
    vocabulary_->for_each_token(node, [words](TokenId token) {
      words[static_cast<std::uint32_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    });
    ++at;
    if (node.size == 1) continue;
    ++depth;
    path[depth] = to;
    ends[depth] = at + node.size - 1;
  }
}

void Matcher::check_time() {
  const auto spent = thread_time() - started_;
  if (spent <= max_mask_time) return;
  refuse(RefusalKind::limit, fmt::format("finding the allowed tokens takes longer than {} ms (limit {} ms)",
                                         std::chrono::duration_cast<std::chrono::milliseconds>(spent).count(),
                                         max_mask_time.count()));
}

bool Matcher::agrees_with_plain_walk(std::span<const std::uint32_t> mask) {
  // Trying every token may explore more than following an answer may.
  const std::unique_ptr<Matcher> copy = fork();
  for (TokenId token = 0; token < vocabulary_->size(); ++token) {
    copy->keep_within_bounds();
    if ((copy->step(copy->now_, token) != Explorer::dead) != has_bit(mask, token)) return false;
  }
  return true;
}

}  // namespace inferno::grammar
