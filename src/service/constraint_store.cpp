#include "service/constraint_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "chat/constraint/compile.h"
#include "grammar/grammar.h"
#include "grammar/masks/mask_store.h"
#include "grammar/masks/vocabulary.h"
#include "grammar/matcher.h"

namespace inferno {
namespace {

// The control tokens that the grammar itself places, such as Harmony's <|return|>.
std::vector<TokenId> named_tokens(const grammar::Grammar& grammar) {
  std::vector<TokenId> named;
  const grammar::Machine& machine = grammar.machine();
  for (const auto& edge : machine.token_edges) {
    if (edge.except) continue;
    const std::vector<TokenId>& ids = machine.token_sets[edge.ids];
    named.insert(named.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

struct Rulebook {
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  std::vector<TokenId> named;
  // Whether a stop token that is ordinary text cuts the answer wherever it stands, like a stop string. In a
  // format of several messages, most of which are free text, it would otherwise be banned everywhere.
  bool text_may_stop = false;
};

class GrammarConstraint : public Constraint {
 public:
  GrammarConstraint(std::unique_ptr<grammar::Matcher> matcher, std::shared_ptr<const Rulebook> rulebook)
      : matcher_(std::move(matcher)), rulebook_(std::move(rulebook)) {}

  void fill(std::span<std::uint32_t> mask) override { matcher_->fill(mask); }
  void take(TokenId token) override {
    expects(matcher_->take(token), "a sampled token is one that the mask allowed");
  }
  bool may_end() override { return matcher_->may_end(); }
  bool is_finished() override { return matcher_->is_finished(); }
  bool names(TokenId token) const override {
    return std::ranges::binary_search(rulebook_->named, token) ||
           (rulebook_->text_may_stop && rulebook_->vocabulary->is_ordinary(token));
  }
  std::unique_ptr<Constraint> fork() const override {
    return std::make_unique<GrammarConstraint>(matcher_->fork(), rulebook_);
  }

 private:
  std::unique_ptr<grammar::Matcher> matcher_;
  std::shared_ptr<const Rulebook> rulebook_;
};

// For a reply that continues a message outside of its own protocol: there is no form to keep.
class NoConstraint : public Constraint {
 public:
  void fill(std::span<std::uint32_t> mask) override { std::ranges::fill(mask, ~std::uint32_t{0}); }
  void take(TokenId) override {}
  bool may_end() override { return true; }
  bool is_finished() override { return false; }
  std::unique_ptr<Constraint> fork() const override { return std::make_unique<NoConstraint>(); }
};

}  // namespace

void ConstraintNotes::add(const std::vector<std::string>& notes) {
  const std::lock_guard lock(mutex_);
  notes_.insert(notes_.end(), notes.begin(), notes.end());
}

std::vector<std::string> ConstraintNotes::all() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::size_t CompiledConstraint::bytes() const {
  return grammar->bytes() + masks->bytes();
}

CompiledConstraint GrammarCache::get(const std::string& key, const Compile& compile,
                                     const std::stop_token& cancel) {
  {
    std::unique_lock lock(mutex_);
    const bool may_go_on =
        compiled_.wait(lock, cancel, [&] { return by_key_.contains(key) || !compiling_.contains(key); });
    if (!may_go_on) fail(ErrorKind::invalid_request, "compiling the constraint was cancelled");
    if (const CompiledConstraint* known = find(key)) return *known;
    compiling_.insert(key);
  }
  try {
    return add(key, compile());
  } catch (...) {
    stop_compiling(key);
    throw;
  }
}

const CompiledConstraint* GrammarCache::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->compiled;
}

CompiledConstraint GrammarCache::add(const std::string& key,
                                     std::shared_ptr<const grammar::Grammar> grammar) {
  const CompiledConstraint compiled = {.grammar = std::move(grammar),
                                       .masks = std::make_shared<grammar::SharedMasks>()};
  {
    const std::lock_guard lock(mutex_);
    entries_.push_front({key, compiled});
    by_key_.emplace(entries_.front().key, entries_.begin());
    // The masks of all entries have grown since they were added.
    std::size_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.bytes();
    while (entries_.size() > max_grammars || bytes > max_bytes) {
      bytes -= std::min(bytes, entries_.back().bytes());
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }
  stop_compiling(key);
  return compiled;
}

void GrammarCache::stop_compiling(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    compiling_.erase(key);
  }
  compiled_.notify_all();
}

std::size_t GrammarCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::shared_ptr<const grammar::Vocabulary> ConstraintStore::vocabulary() {
  std::call_once(built_, [this] { vocabulary_ = grammar::make_vocabulary(tokenizer_); });
  return vocabulary_;
}

std::shared_ptr<PendingConstraint> ConstraintStore::compile(const ReplyConstraint& constraint,
                                                            const ReplyShape& shape,
                                                            std::shared_ptr<ConstraintNotes> notes) {
  if (!restricts(constraint, shape)) return nullptr;
  Task task{.constraint = constraint,
            .shape = shape,
            .notes = std::move(notes),
            .key = cache_key(constraint, shape)};
  return compiler_.compile(
      [this, task = std::move(task)](const std::stop_token& cancel) { return compiled(task, cancel); });
}

std::unique_ptr<const Constraint> ConstraintStore::compiled(const Task& task, const std::stop_token& cancel) {
  const auto compile = [&] { return compile_reply(task.constraint, task.shape, tokenizer_, cancel); };
  CompiledConstraint compiled = cache_.get(task.key, compile, cancel);
  if (task.notes) task.notes->add(compiled.grammar->notes());
  return begun(task, std::move(compiled));
}

std::unique_ptr<const Constraint> ConstraintStore::begun(const Task& task, CompiledConstraint compiled) {
  const bool is_free_form = task.shape.kind == ReplyShape::Kind::channels && task.constraint.is_empty();
  const auto rulebook = std::make_shared<const Rulebook>(Rulebook{
      .vocabulary = vocabulary(), .named = named_tokens(*compiled.grammar), .text_may_stop = is_free_form});
  auto matcher = std::make_unique<grammar::Matcher>(std::move(compiled.grammar), rulebook->vocabulary,
                                                    std::move(compiled.masks));
  if (begin_reply(*matcher, task.shape, tokenizer_)) {
    return std::make_unique<const GrammarConstraint>(std::move(matcher), rulebook);
  }
  if (is_free_form) return std::make_unique<const NoConstraint>();
  throw ConstraintError("/messages", {.kind = grammar::RefusalKind::invalid,
                                      .pointer = {},
                                      .keyword = {},
                                      .message = "the message to be continued does not fit the constraint on "
                                                 "the reply"});
}

}  // namespace inferno
