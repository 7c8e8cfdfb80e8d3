// Calling macros, functions and methods, and putting arguments to parameters.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/frame.h"
#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

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
    meter_.take(2 * sizeof(Scope));  // kept until the end, hence never given back
    captured_scopes_.push_back(scope);
  }
  return std::shared_ptr<const MacroValue>(
      new MacroValue{.macro = std::move(macro), .scope = scope, .charge = {&meter_, sizeof(MacroValue)}});
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

// caller, kwargs and varargs take what no parameter took; without them, leftovers are an error.
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

Value Interpreter::make_namespace(std::vector<std::pair<std::string, Value>> attributes) {
  const std::size_t bytes = sizeof(Namespace) + attributes.capacity() * sizeof(attributes[0]);
  namespaces_.push_back(std::shared_ptr<Namespace>(
      new Namespace{.attributes = std::move(attributes), .charge = {&meter_, bytes}}));
  return namespaces_.back();
}

}  // namespace inferno::jinja
