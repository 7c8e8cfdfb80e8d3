// How the interpreter evaluates expressions and calls macros, functions, methods and recursive loops.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/jinja/builtins/builtins.h"
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
  // Jinja2 has these; a template that prints them must not silently print nothing.
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
  return apply_sign(meter_, evaluate(*sign.operand, scope), sign.negative);
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

Arguments Interpreter::evaluate(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments result;
  result.positional.reserve(arguments.positional.size());
  for (const ExpressionPtr& argument : arguments.positional) {
    result.positional.push_back(evaluate(*argument, scope));
  }
  for (const auto& [name, argument] : arguments.named) {
    result.named.emplace_back(name, evaluate(*argument, scope));
  }
  if (arguments.spread) {
    const std::vector<Value> more = to_vector(meter_, evaluate(*arguments.spread, scope));
    result.positional.insert(result.positional.end(), more.begin(), more.end());
  }
  if (arguments.spread_named) {
    const Value more = evaluate(*arguments.spread_named, scope);
    if (more.dict() == nullptr) refuse(meter_, "the argument after ** must be a mapping");
    for (const DictEntry& entry : more.dict()->entries) {
      if (!entry.key.is_string()) refuse(meter_, "keywords must be strings");
      result.named.emplace_back(std::string(entry.key.text()->view()), entry.value);
    }
  }
  return result;
}

Value Interpreter::apply(const FilterCall& filter, const Value& input, const ScopePtr& scope) {
  const int line = meter_.line();
  if (filter.function == nullptr) refuse(meter_, fmt::format("there is no filter named '{}'", filter.name));
  const Arguments arguments = evaluate(filter.arguments, scope);
  meter_.at_line(line);
  return filter.function(*this, input, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  meter_.step();
  if (const auto* missing = callee.get<Undefined>()) refuse_undefined(meter_, *missing);
  if (const auto* macro = callee.shared<const MacroValue>()) return call_macro(*macro, arguments);
  if (const auto* function = callee.shared<const Callable>()) {
    return function->function(*this, function->self, arguments);
  }
  if (const auto* loop = callee.shared<LoopState>()) return call_loop(*loop, arguments);
  if (auto* joiner = callee.shared<Joiner>()) {
    if (std::exchange(joiner->used, true)) return joiner->separator;
    return Text();
  }
  refuse(meter_, fmt::format("'{}' object is not callable", type_name(callee)));
}

Value Interpreter::make_macro(std::shared_ptr<const ast::Macro> macro, const ScopePtr& scope) {
  if (scope && (captured_scopes_.empty() || captured_scopes_.back() != scope)) {
    meter_.allocate(2 * sizeof(Scope));  // kept until the end, hence never released
    captured_scopes_.push_back(scope);
  }
  const std::string_view name = macro->name;
  return std::shared_ptr<const MacroValue>(new MacroValue{
      .macro = std::move(macro), .name = name, .scope = scope, .charge = {&meter_, sizeof(MacroValue)}});
}

Interpreter::Flow Interpreter::run(const ast::MacroDefinition& definition, const ScopePtr& scope, Text&) {
  set_name(definition.macro->id, make_macro(definition.macro, scope), scope);
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const ast::CallBlock& block, const ScopePtr& scope, Text& out) {
  const auto& call = std::get<ast::Call>(block.call->kind);
  const Value callee = evaluate(*call.callee, scope);
  Arguments arguments = evaluate(call.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(block.macro, scope));
  write(out, to_text(meter_, this->call(callee, arguments)));
  return Flow::next;
}

Value Interpreter::call_macro(const MacroValue& macro, const Arguments& arguments) {
  meter_.check_depth(++macro_depth_, "macro calls");
  const auto scope = std::make_shared<Scope>(Scope{.outer = macro.scope, .names = {}});
  bind_parameters(*macro.macro, arguments, scope);
  Text out;
  execute(macro.macro->block, scope, out);
  --macro_depth_;
  return out;
}

void Interpreter::bind_parameters(const ast::Macro& macro, const Arguments& arguments,
                                  const ScopePtr& scope) {
  Arguments left;
  left.named = arguments.named;
  const std::size_t count = macro.parameters.size();
  if (arguments.positional.size() > count) {
    left.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                           arguments.positional.end());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const ast::Parameter& parameter = macro.parameters[i];
    if (i < arguments.positional.size()) {
      scope->set(parameter.id, arguments.positional[i]);
      continue;
    }
    const auto named = std::find_if(left.named.begin(), left.named.end(),
                                    [&](const auto& entry) { return entry.first == parameter.name; });
    if (named != left.named.end()) {
      scope->set(parameter.id, named->second);
      left.named.erase(named);
    } else if (!parameter.otherwise) {
      scope->set(parameter.id, undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    } else {
      scope->set(parameter.id, evaluate(*parameter.otherwise, scope));
    }
  }
  bind_special(macro, std::move(left), scope);
}

// caller, kwargs and varargs take the arguments that match no parameter; without them those are an error.
void Interpreter::bind_special(const ast::Macro& macro, Arguments left, const ScopePtr& scope) {
  if (macro.caller) {
    const auto given = std::find_if(left.named.begin(), left.named.end(),
                                    [](const auto& entry) { return entry.first == "caller"; });
    scope->set(*macro.caller, given == left.named.end() ? undefined("No caller defined") : given->second);
    if (given != left.named.end()) left.named.erase(given);
  }
  if (macro.kwargs) {
    std::vector<DictEntry> entries;
    for (auto& [name, value] : left.named) entries.push_back({make_text(meter_, name), std::move(value)});
    scope->set(*macro.kwargs, make_dict(meter_, std::move(entries)));
  } else if (!left.named.empty()) {
    refuse(meter_, fmt::format("macro '{}' takes no keyword argument '{}'", macro.name,
                               left.named.front().first.substr(0, 80)));
  }
  if (macro.varargs) {
    scope->set(*macro.varargs, make_tuple(meter_, std::move(left.positional)));
  } else if (!left.positional.empty()) {
    refuse(meter_,
           fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, macro.parameters.size()));
  }
}

Value Interpreter::call_loop(const LoopState& loop, const Arguments& arguments) {
  if (!loop.statement->recursive) {
    refuse(meter_, "The loop must have the 'recursive' marker to be called recursively.");
  }
  if (loop.finished) refuse(meter_, "a loop cannot be called after its end");
  const Parameters given(meter_, "loop", arguments, {"iterable"}, 1);
  meter_.check_depth(++macro_depth_, "recursive loops");
  Text out;
  run_loop(*loop.statement, *given[0], loop.depth0 + 1, loop.outer, out);
  --macro_depth_;
  return out;
}

Value Interpreter::make_namespace(std::vector<std::pair<std::string, Value>> attributes) {
  const std::size_t bytes = sizeof(Namespace) + attributes.capacity() * sizeof(attributes[0]);
  namespaces_.push_back(std::shared_ptr<Namespace>(
      new Namespace{.attributes = std::move(attributes), .charge = {&meter_, bytes}}));
  return namespaces_.back();
}

}  // namespace inferno::jinja
