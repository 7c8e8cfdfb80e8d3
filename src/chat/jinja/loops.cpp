// {% for %} and everything `loop` answers.
#include <fmt/format.h>

#include "chat/jinja/builtins.h"
#include "chat/jinja/frame.h"
#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

namespace {

// A loop object may outlive its loop in a namespace, and may be held by what it holds. Letting go of
// everything at the end leaves no circle behind.
class LoopEnd {
 public:
  explicit LoopEnd(LoopState& loop) : loop_(loop) {}
  ~LoopEnd() {
    loop_.finished = true;
    loop_.outer.reset();
    loop_.ahead.clear();
    loop_.current = loop_.before = loop_.last_changed = None{};
  }
  LoopEnd(const LoopEnd&) = delete;
  LoopEnd& operator=(const LoopEnd&) = delete;

 private:
  LoopState& loop_;
};

}  // namespace

Interpreter::Flow Interpreter::run(const ast::For& statement, const ScopePtr& scope, Text& out) {
  return run_loop(statement, evaluate(*statement.iterable, scope), /*depth0=*/0, scope, out);
}

Interpreter::Flow Interpreter::run_loop(const ast::For& statement, const Value& iterable, std::int64_t depth0,
                                        const ScopePtr& scope, Text& out) {
  const auto size = statement.test ? std::nullopt : length_of(iterable);
  const auto loop = std::make_shared<LoopState>(meter_, Iteration(meter_, iterable), size);
  loop->statement = &statement;
  loop->outer = scope;
  loop->depth0 = depth0;
  loop->value_depth = depth_of(iterable);
  meter_.check_depth(loop->value_depth, "nested values");
  const LoopEnd end(*loop);
  ScopePtr round;
  bool ran = false;
  while (auto item = next_item(*loop)) {
    ran = true;
    // A round's scope is used again unless a macro or an inner block kept it.
    if (!round || round.use_count() > 1) round = std::make_shared<Scope>(Scope{.outer = scope, .names = {}});
    round->names.clear();
    if (loop_name_) round->set(*loop_name_, loop);
    assign(statement.target, *item, round);
    if (execute(statement.block, round, out) == Flow::break_loop) break;
  }
  if (ran) return Flow::next;
  if (statement.otherwise.body.empty()) return Flow::next;
  return execute(statement.otherwise, std::make_shared<Scope>(Scope{.outer = scope, .names = {}}), out);
}

// The value a target was given, put together again.
Value Interpreter::collect(const ast::Target& target, const ScopePtr& scope) {
  if (const auto* name = std::get_if<ast::NameTarget>(&target.kind)) return lookup(name->id, scope);
  std::vector<Value> items;
  if (const auto* tuple = std::get_if<ast::TupleTarget>(&target.kind)) {
    for (const ast::Target& item : tuple->items) items.push_back(collect(item, scope));
  }
  return make_tuple(meter_, std::move(items));
}

// The next item that passes the loop's condition.
std::optional<Value> Interpreter::draw(LoopState& loop) {
  while (auto item = loop.iteration.next(meter_)) {
    if (!loop.statement->test) return item;
    const auto scope = std::make_shared<Scope>(Scope{.outer = loop.outer, .names = {}});
    assign(loop.statement->target, *item, scope);
    // Jinja2 filters through a generator that unpacks: what comes out of it are tuples.
    if (is_true(evaluate(*loop.statement->test, scope))) return collect(loop.statement->target, scope);
  }
  return std::nullopt;
}

std::optional<Value> Interpreter::next_item(LoopState& loop) {
  std::optional<Value> item;
  if (loop.ahead.empty()) {
    item = draw(loop);
  } else {
    item = std::move(loop.ahead.front());
    loop.ahead.pop_front();
  }
  if (!item) return std::nullopt;
  ++loop.index0;
  loop.before = std::exchange(loop.current, *item);
  return item;
}

const Value* Interpreter::peek(LoopState& loop) {
  if (loop.ahead.empty()) {
    auto item = draw(loop);
    if (!item) return nullptr;
    loop.ahead.push_back(*std::move(item));
  }
  return &loop.ahead.front();
}

std::int64_t Interpreter::loop_length(LoopState& loop) {
  if (!loop.length) {
    while (auto item = draw(loop)) {
      loop.ahead.push_back(*std::move(item));
      loop.ahead_charge.resize(sizeof(LoopState) + loop.ahead.size() * sizeof(Value));
    }
    loop.length = loop.index0 + 1 + static_cast<std::int64_t>(loop.ahead.size());
  }
  return *loop.length;
}

Value Interpreter::loop_attribute(const std::shared_ptr<LoopState>& loop, std::string_view name) {
  LoopState& state = *loop;
  if (name == "index0") return state.index0;
  if (name == "index") return state.index0 + 1;
  if (name == "first") return state.index0 == 0;
  if (name == "last") return peek(state) == nullptr;
  if (name == "length") return loop_length(state);
  if (name == "revindex") return loop_length(state) - state.index0;
  if (name == "revindex0") return loop_length(state) - state.index0 - 1;
  if (name == "depth") return state.depth0 + 1;
  if (name == "depth0") return state.depth0;
  if (name == "previtem") {
    return state.index0 == 0 ? undefined("there is no previous item") : state.before;
  }
  if (name == "nextitem") {
    const Value* next = peek(state);
    return next == nullptr ? undefined("there is no next item") : *next;
  }
  return get_attribute(meter_, loop, name);
}

Text Interpreter::print(const Value& value) {
  auto* loop = value.shared<LoopState>();
  if (loop == nullptr) return to_text(meter_, value);
  const std::int64_t length = loop_length(*loop);
  return Text(meter_, fmt::format("<LoopContext {}/{}>", loop->index0 + 1, length), Origin::trusted);
}

Value Interpreter::call_loop(const LoopState& loop, const Arguments& arguments) {
  if (!loop.statement->recursive) {
    refuse(meter_, "The loop must have the 'recursive' marker to be called recursively.");
  }
  if (loop.finished) refuse(meter_, "the loop that is called is over");
  const Parameters given(meter_, "loop", arguments, {"iterable"}, 1);
  meter_.check_depth(++macro_depth_, "recursive loops");
  Text out;
  run_loop(*loop.statement, *given[0], loop.depth0 + 1, loop.outer, out);
  --macro_depth_;
  return out;
}

}  // namespace inferno::jinja
