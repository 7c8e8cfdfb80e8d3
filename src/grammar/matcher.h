// Follows one answer through a constraint and says which tokens may come next.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/explorer.h"
#include "grammar/grammar.h"
#include "grammar/masks/mask_store.h"
#include "grammar/masks/vocabulary.h"

namespace inferno::grammar {

// One per answer; not thread-safe, but may move between threads. fill() and take() throw RefusedError (kind
// limit) when the constraint turns out too ambiguous or too slow to follow; the answer cannot go on then.
class Matcher {
 public:
  // Matchers of the same grammar and vocabulary may share their masks, in any threads.
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary,
          std::shared_ptr<SharedMasks> shared = nullptr);
  ~Matcher();

  // Bit t of word t / 32: token t may come next. Never a control token that the constraint does not name: the
  // caller adds its stop tokens where may_end(). `mask` has at least vocabulary.mask_words() words; words
  // beyond are cleared.
  void fill(std::span<std::uint32_t> mask);
  // False if the token may not come next; then nothing has changed.
  bool take(TokenId token);
  // The same for the bytes of a text, one at a time.
  bool take_byte(std::uint8_t byte);

  bool may_end() const;  // the text so far is complete
  bool is_finished();    // nothing can follow
  std::unique_ptr<Matcher> fork() const;

  // Whether fill() gives what trying every token byte by byte gives; for tests.
  bool agrees_with_plain_walk(std::span<const std::uint32_t> mask);
  std::size_t bytes() const;

 private:
  using Mask = std::shared_ptr<const StoredMask>;
  struct StringRoom;
  Explorer::Id step(Explorer::Id from, TokenId token);
  void keep_within_bounds();
  Mask fill_without_keys(Explorer::Id id, std::span<std::uint32_t> mask);
  bool remove_repeated_keys(Explorer::Id id, std::span<std::uint32_t> mask);
  void compute(Explorer::Id id, std::span<std::uint32_t> mask);
  bool add_string_tokens(std::uint32_t frame, std::span<std::uint32_t> mask);
  void add_tails(Explorer::Id exact, Explorer::Id from, const StringRoom& room,
                 std::span<std::uint32_t> mask);
  bool accepts(Explorer::Id from, TokenId token);
  void walk(Explorer::Id id, const std::vector<TrieNode>& trie, std::span<std::uint32_t> mask);
  void add_token_edges(Explorer::Id id, std::span<std::uint32_t> mask) const;
  void remember(Explorer::Id id, const Mask& mask);
  void check_time();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<Explorer> explorer_;
  Explorer::Id now_ = Explorer::dead;
  std::shared_ptr<SharedMasks> shared_;
  std::unordered_map<Explorer::Id, Mask> masks_;
  std::size_t mask_bytes_ = 0;
  std::vector<Explorer::Id> path_;
  std::vector<std::uint32_t> ends_;
  std::chrono::nanoseconds started_{};  // thread_time() at the beginning of fill()
};

}  // namespace inferno::grammar
