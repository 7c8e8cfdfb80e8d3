#include "chat/jinja/interpreter.h"

#include <fmt/format.h>

#include <utility>

namespace inferno::jinja {
namespace {

// A loop object may outlive its loop in a namespace and may be part of a reference cycle. Clearing its
// references at the end breaks the cycle.
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

const Value* Scope::find(NameId id) const {
  for (const auto& [name, value] : names) {
    if (name == id) return &value;
  }
  return nullptr;
}

void Scope::set(NameId id, Value value) {
  for (auto& [name, held] : names) {
    if (name != id) continue;
    held = std::move(value);
    return;
  }
  names.emplace_back(id, std::move(value));
}

Interpreter::Interpreter(const Program& program, Meter& meter, LocalClock clock)
    : program_(program), meter_(meter), clock_(std::move(clock)), globals_(program.names.size()) {
  if (const auto found = program.ids.find("loop"); found != program.ids.end()) loop_name_ = found->second;
}

Interpreter::Frame::Frame(Interpreter& interpreter) : interpreter_(interpreter) {
  // A macro call takes about a dozen levels: loop, condition, output, call, filter.
  constexpr int levels_per_depth = 16;
  interpreter.meter_.check_depth(interpreter.frames_ / levels_per_depth, "evaluation");
  ++interpreter.frames_;
}

// Namespaces and macros may refer to each other in cycles; emptying them frees everything.
Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->attributes.clear();
  for (const auto& scope : captured_scopes_) {
    scope->names.clear();
    scope->outer.reset();
  }
}

bool Interpreter::reads(const std::string& name) const {
  return program_.ids.contains(name);
}

void Interpreter::define(const std::string& name, Value value) {
  if (const auto found = program_.ids.find(name); found != program_.ids.end()) {
    globals_[found->second] = std::move(value);
  }
}

Text Interpreter::run() {
  Text out;
  execute(program_.block, nullptr, out);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope, Text& out) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement, scope, out);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, const ScopePtr& scope, Text& out) {
  const Frame frame(*this);
  meter_.step();
  meter_.at_line(statement.line);
  return std::visit([&](const auto& kind) { return run(kind, scope, out); }, statement.kind);
}

void Interpreter::write(Text& out, const Text& text) {
  meter_.check_output(out.size() + text.size());
  out.append(meter_, text);
}

Interpreter::Flow Interpreter::execute(const Block& block, const ScopePtr& own_scope, Text& out) {
  for (const auto& [id, value] : block.unset) set_name(id, value, own_scope);
  return execute(block.body, own_scope, out);
}

Text Interpreter::capture(const Block& block, const ScopePtr& scope) {
  Text out;
  const auto inner = std::make_shared<Scope>(Scope{.outer = scope, .names = {}});
  execute(block, inner, out);
  return out;
}

void Interpreter::set_name(NameId id, Value value, const ScopePtr& scope) {
  if (scope) {
    scope->set(id, std::move(value));
  } else {
    globals_[id] = std::move(value);
  }
}

void Interpreter::assign(const ast::Target& target, const Value& value, const ScopePtr& scope) {
  if (const auto* name = std::get_if<ast::NameTarget>(&target.kind)) return set_name(name->id, value, scope);
  if (const auto* place = std::get_if<ast::NamespaceTarget>(&target.kind)) {
    const Value owner = lookup(place->id, scope);
    auto* space = owner.shared<Namespace>();
    if (space == nullptr) refuse(meter_, "cannot assign attribute on non-namespace object");
    for (auto& [name, held] : space->attributes) {
      if (name != place->attribute) continue;
      held = value;
      return;
    }
    space->attributes.emplace_back(place->attribute, value);
    space->charge.resize(sizeof(Namespace) + space->attributes.capacity() * sizeof(space->attributes[0]));
    return;
  }
  const auto& tuple = std::get<ast::TupleTarget>(target.kind);
  if (!is_iterable(value)) {
    refuse(meter_, fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  }
  const std::vector<Value> items = to_vector(meter_, value);
  const std::size_t wanted = tuple.items.size();
  if (items.size() < wanted) {
    refuse(meter_, fmt::format("not enough values to unpack (expected {}, got {})", wanted, items.size()));
  }
  if (items.size() > wanted) refuse(meter_, fmt::format("too many values to unpack (expected {})", wanted));
  for (std::size_t i = 0; i < wanted; ++i) assign(tuple.items[i], items[i], scope);
}

Interpreter::Flow Interpreter::run(const ast::Data& data, const ScopePtr&, Text& out) {
  write(out, data.text);
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::Output& output, const ScopePtr& scope, Text& out) {
  write(out, print(evaluate(*output.value, scope)));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::If& statement, const ScopePtr& scope, Text& out) {
  for (const ast::Branch& branch : statement.branches) {
    if (is_true(evaluate(*branch.test, scope))) return execute(branch.body, scope, out);
  }
  return execute(statement.otherwise, scope, out);
}

Interpreter::Flow Interpreter::run(const ast::Set& statement, const ScopePtr& scope, Text&) {
  assign(statement.target, evaluate(*statement.value, scope), scope);
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::SetBlock& statement, const ScopePtr& scope, Text&) {
  Value value = capture(statement.block, scope);
  for (const FilterCall& filter : statement.filters) value = apply(filter, value, scope);
  assign(statement.target, value, scope);
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::FilterBlock& block, const ScopePtr& scope, Text& out) {
  Value value = capture(block.block, scope);
  for (const FilterCall& filter : block.filters) value = apply(filter, value, scope);
  write(out, to_text(meter_, value));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::With& with, const ScopePtr& scope, Text& out) {
  const auto inner = std::make_shared<Scope>(Scope{.outer = scope, .names = {}});
  for (const auto& [target, value] : with.bindings) assign(target, evaluate(*value, scope), inner);
  return execute(with.block, inner, out);
}

// Jinja2 runs the body as a call block, so names set inside stay inside.
Interpreter::Flow Interpreter::run(const ast::Generation& block, const ScopePtr& scope, Text& out) {
  write(out, capture(block.block, scope));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::Break&, const ScopePtr&, Text&) {
  return Flow::break_loop;
}

Interpreter::Flow Interpreter::run(const ast::Continue&, const ScopePtr&, Text&) {
  return Flow::continue_loop;
}

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
    // The scope of an iteration is reused unless a macro or an inner block has kept it.
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

// The value that was assigned to a target.
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
    // Jinja2 filters with a generator that unpacks its items, so it yields tuples.
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

}  // namespace inferno::jinja
