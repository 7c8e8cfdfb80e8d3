// How each kind of expression gets its value.
#include <fmt/format.h>

#include "chat/jinja/builtins.h"
#include "chat/jinja/frame.h"
#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

Value Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  const Frame frame(*this);
  meter_.step();
  meter_.at_line(expression.line);
  return std::visit([&](const auto& kind) { return eval(kind, scope); }, expression.kind);
}

Value Interpreter::lookup(NameId id, const ScopePtr& scope) {
  for (const Scope* level = scope.get(); level != nullptr; level = level->outer.get()) {
    if (const Value* found = level->find(id)) return *found;
  }
  if (globals_[id]) return *globals_[id];
  const std::string& name = program_.names[id];
  if (const auto function = find_global(name)) {
    return std::shared_ptr<const Callable>(new Callable{
        .name = name, .function = function, .self = None{}, .charge = {&meter_, sizeof(Callable)}});
  }
  // Jinja2 has these, and a template that prints them should not silently print nothing.
  if (name == "lipsum" || name == "self") refuse(meter_, fmt::format("'{}' is not supported", name));
  return undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::eval(const ast::Constant& constant, const ScopePtr&) {
  return constant.value;
}

Value Interpreter::eval(const ast::Name& name, const ScopePtr& scope) {
  return lookup(name.id, scope);
}

Value Interpreter::eval(const ast::SequenceLiteral& literal, const ScopePtr& scope) {
  std::vector<Value> items;
  items.reserve(literal.items.size());
  for (const ExpressionPtr& item : literal.items) items.push_back(evaluate(*item, scope));
  return make_sequence(meter_, std::move(items), literal.kind);
}

Value Interpreter::eval(const ast::DictLiteral& literal, const ScopePtr& scope) {
  std::vector<DictEntry> entries;
  entries.reserve(literal.entries.size());
  for (const auto& [key, value] : literal.entries) {
    Value evaluated_key = evaluate(*key, scope);
    if (!is_hashable(evaluated_key)) {
      refuse(meter_, fmt::format("unhashable type: '{}'", type_name(evaluated_key)));
    }
    entries.push_back({std::move(evaluated_key), evaluate(*value, scope)});
  }
  return make_dict(meter_, std::move(entries));
}

Value Interpreter::attribute_of(const Value& object, std::string_view name) {
  if (const auto* loop = object.get<std::shared_ptr<LoopState>>()) return loop_attribute(*loop, name);
  return get_attribute(meter_, object, name);
}

Value Interpreter::eval(const ast::Attribute& attribute, const ScopePtr& scope) {
  return attribute_of(evaluate(*attribute.object, scope), attribute.name);
}

Value Interpreter::eval(const ast::Subscript& subscript, const ScopePtr& scope) {
  const Value object = evaluate(*subscript.object, scope);
  const Value index = evaluate(*subscript.index, scope);
  if (object.shared<LoopState>() != nullptr && index.is_string()) {
    return attribute_of(object, index.text()->view());
  }
  return get_item(meter_, object, index);
}

Value Interpreter::eval(const ast::Slice& slice, const ScopePtr& scope) {
  const auto bound = [&](const ExpressionPtr& part) { return part ? evaluate(*part, scope) : Value(None{}); };
  const Value object = evaluate(*slice.object, scope);
  const Value start = bound(slice.start);
  const Value stop = bound(slice.stop);
  return get_slice(meter_, object, start, stop, bound(slice.step));
}

Value Interpreter::eval(const ast::Call& call, const ScopePtr& scope) {
  const Value callee = evaluate(*call.callee, scope);
  const Arguments arguments = evaluate(call.arguments, scope);
  return this->call(callee, arguments);
}

Value Interpreter::eval(const ast::Filter& filter, const ScopePtr& scope) {
  return apply(filter.call, evaluate(*filter.input, scope), scope);
}

Value Interpreter::eval(const ast::Test& test, const ScopePtr& scope) {
  const Value input = evaluate(*test.input, scope);
  if (test.function == nullptr) refuse(meter_, fmt::format("there is no test named '{}'", test.name));
  return test.function(*this, input, evaluate(test.arguments, scope)) != test.negated;
}

Value Interpreter::eval(const ast::Conditional& conditional, const ScopePtr& scope) {
  const int line = meter_.line();
  if (is_true(evaluate(*conditional.test, scope))) return evaluate(*conditional.then, scope);
  if (conditional.otherwise) return evaluate(*conditional.otherwise, scope);
  return undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", line));
}

Value Interpreter::eval(const ast::Logic& logic, const ScopePtr& scope) {
  Value value;
  for (const ExpressionPtr& operand : logic.operands) {
    value = evaluate(*operand, scope);
    if (is_true(value) != logic.is_and) break;
  }
  return value;
}

Value Interpreter::eval(const ast::Not& expression, const ScopePtr& scope) {
  return !is_true(evaluate(*expression.operand, scope));
}

Value Interpreter::eval(const ast::Sign& sign, const ScopePtr& scope) {
  return negate(meter_, evaluate(*sign.operand, scope), sign.negative);
}

Value Interpreter::eval(const ast::Compare& comparison, const ScopePtr& scope) {
  Value left = evaluate(*comparison.first, scope);
  for (const auto& [operation, operand] : comparison.rest) {
    Value right = evaluate(*operand, scope);
    if (!compare(meter_, operation, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::eval(const ast::Arithmetic& chain, const ScopePtr& scope) {
  Value result = evaluate(*chain.first, scope);
  for (const auto& [operation, operand] : chain.rest) {
    result = arithmetic(meter_, operation, result, evaluate(*operand, scope));
  }
  return result;
}

Value Interpreter::eval(const ast::Concat& concat, const ScopePtr& scope) {
  Text result;
  for (const ExpressionPtr& part : concat.parts) {
    result.append(meter_, print(evaluate(*part, scope)));
  }
  return result;
}

}  // namespace inferno::jinja
