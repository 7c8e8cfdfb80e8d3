// The constraints of one model's requests: compiled on threads of their own, remembered, and followed token
// by token for the engine.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chat/constraint/reply_constraint.h"
#include "chat/reply/shape.h"
#include "engine/pending_constraint.h"
#include "text/tokenizer.h"

namespace inferno {

namespace grammar {
class Grammar;
class SharedMasks;
class Vocabulary;
}  // namespace grammar

// What compiling a constraint has to say to the requester. Thread-safe.
class ConstraintNotes {
 public:
  void add(const std::vector<std::string>& notes);
  std::vector<std::string> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

// A compiled constraint, and the masks that answers under it have needed so far.
struct CompiledConstraint {
  std::shared_ptr<const grammar::Grammar> grammar;
  std::shared_ptr<grammar::SharedMasks> masks;
  std::size_t bytes() const;
};

// Compiled constraints, the least recently used of which are dropped. Thread-safe.
class GrammarCache {
 public:
  static constexpr std::size_t max_grammars = 256, max_bytes = std::size_t{256} << 20;
  using Compile = std::function<std::shared_ptr<const grammar::Grammar>()>;

  // Compiles what is not there. If another thread compiles the same at this moment, waits for it instead; if
  // that fails, or is cancelled, this one tries itself. Throws what `compile` throws, and
  // Error{invalid_request} if a stop is requested while it waits.
  CompiledConstraint get(const std::string& key, const Compile& compile, const std::stop_token& cancel);
  std::size_t size() const;

 private:
  struct Entry {
    std::string key;
    CompiledConstraint compiled;
    std::size_t bytes() const { return key.size() + compiled.bytes(); }
  };
  const CompiledConstraint* find(const std::string& key);
  CompiledConstraint add(const std::string& key, std::shared_ptr<const grammar::Grammar> grammar);
  void stop_compiling(const std::string& key);

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable_any compiled_;
  std::set<std::string> compiling_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
};

// Thread-safe. Must outlive the requests that use its constraints.
class ConstraintStore {
 public:
  explicit ConstraintStore(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Returns at once. nullptr if every reply is allowed. Errors are those of compile_reply(); get() of the
  // result throws them. `notes` gets the grammar's notes.
  std::shared_ptr<PendingConstraint> compile(const ReplyConstraint& constraint, const ReplyShape& shape,
                                             std::shared_ptr<ConstraintNotes> notes);

 private:
  struct Task {
    ReplyConstraint constraint;
    ReplyShape shape;
    std::shared_ptr<ConstraintNotes> notes;
    std::string key;
  };
  std::shared_ptr<const grammar::Vocabulary> vocabulary();
  std::unique_ptr<const Constraint> compiled(const Task& task, const std::stop_token& cancel);
  std::unique_ptr<const Constraint> begun(const Task& task, CompiledConstraint compiled);

  const Tokenizer& tokenizer_;
  GrammarCache cache_;
  std::once_flag built_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  ConstraintCompiler compiler_;  // last: its threads use the others
};

}  // namespace inferno
