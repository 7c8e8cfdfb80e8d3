// What each kind of statement does.
#include <fmt/format.h>

#include "chat/jinja/frame.h"
#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

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

// Namespaces and macros may refer to each other in circles; emptying them frees everything.
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

Interpreter::Flow Interpreter::execute(const Block& block, const ScopePtr& scope, Text& out) {
  for (const auto& [id, value] : block.unset) set_name(id, value, scope);
  return execute(block.body, scope, out);
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

}  // namespace inferno::jinja
