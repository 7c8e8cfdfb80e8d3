// The tags that open a scope of their own: macros, calls, filters, with, generation; and the targets of
// assignments.
#include <fmt/format.h>

#include "chat/jinja/parser.h"

namespace inferno::jinja {

// A break cannot leave a block whose output is being collected.
Body Parser::parse_captured_body(std::string_view end) {
  const int outer_loops = std::exchange(loops_, 0);
  Body body = parse_body_to(end);
  loops_ = outer_loops;
  return body;
}

std::vector<ast::Parameter> Parser::parse_parameters() {
  std::vector<ast::Parameter> parameters;
  expect_symbol("(");
  while (!at_symbol(")")) {
    if (!parameters.empty()) expect_symbol(",");
    const std::string name = expect_any_name();
    ExpressionPtr otherwise;
    if (skip_symbol("=")) {
      otherwise = parse_expression();
    } else if (!parameters.empty() && parameters.back().otherwise) {
      refuse("a parameter without a default follows one with a default");
    }
    parameters.push_back({name_id(name), name, std::move(otherwise)});
  }
  expect_symbol(")");
  return parameters;
}

std::shared_ptr<ast::Macro> Parser::parse_macro_body(ast::Macro macro, std::string_view end) {
  const Softness hard(*this, false);
  macros_.emplace_back();
  macro.block.body = parse_captured_body(end);
  const SpecialNames used = macros_.back();
  macros_.pop_back();
  const auto declared = [&](std::string_view name) {
    for (const ast::Parameter& parameter : macro.parameters) {
      if (parameter.name == name) return true;
    }
    return false;
  };
  if (used.varargs && !declared("varargs")) macro.varargs = name_id("varargs");
  if (used.kwargs && !declared("kwargs")) macro.kwargs = name_id("kwargs");
  if (used.caller && !declared("caller")) macro.caller = name_id("caller");
  return std::make_shared<ast::Macro>(std::move(macro));
}

Statement Parser::parse_macro(int line) {
  ast::Macro macro;
  macro.name = expect_any_name();
  macro.id = name_id(macro.name);
  macro.parameters = parse_parameters();
  end_tag();
  return {line, ast::MacroDefinition{parse_macro_body(std::move(macro), "endmacro")}};
}

Statement Parser::parse_call_block(int line) {
  ast::Macro macro;
  macro.name = "caller";
  macro.id = name_id(macro.name);
  if (at_symbol("(")) macro.parameters = parse_parameters();
  ExpressionPtr call = parse_expression();
  if (!std::holds_alternative<ast::Call>(call->kind)) refuse("expected a call");
  end_tag();
  return {line, ast::CallBlock{parse_macro_body(std::move(macro), "endcall"), std::move(call)}};
}

Statement Parser::parse_filter_block(int line) {
  const Softness hard(*this, false);
  std::vector<FilterCall> filters;
  filters.push_back(parse_filter_call());
  while (skip_symbol("|")) filters.push_back(parse_filter_call());
  end_tag();
  return {line, ast::FilterBlock{std::move(filters), {parse_captured_body("endfilter"), {}}}};
}

Statement Parser::parse_with(int line) {
  ast::With with;
  while (current().kind != TokenKind::statement_end) {
    if (!with.bindings.empty()) expect_symbol(",");
    ast::Target target = parse_simple_target();
    expect_symbol("=");
    with.bindings.emplace_back(std::move(target), parse_expression());
  }
  end_tag();
  const Softness hard(*this, false);
  with.block.body = parse_body_to("endwith");
  return {line, std::move(with)};
}

Statement Parser::parse_generation(int line) {
  end_tag();
  const Softness hard(*this, false);
  return {line, ast::Generation{{parse_captured_body("endgeneration"), {}}}};
}

Statement Parser::parse_loop_control(int line, bool breaks) {
  if (loops_ == 0) refuse("a break or continue stands outside of every loop");
  take();
  end_tag();
  if (breaks) return {line, ast::Break{}};
  return {line, ast::Continue{}};
}

ast::Target Parser::parse_simple_target() {
  const Level level(*this);
  if (skip_symbol("(")) {
    ast::Target target = parse_target({});
    expect_symbol(")");
    return target;
  }
  const std::string name = expect_any_name();
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
    if (name == constant) refuse(fmt::format("'{}' cannot be assigned to", name));
  }
  if (skip_symbol(".")) return {ast::NamespaceTarget{name_id(name), expect_any_name()}};
  return {ast::NameTarget{name_id(name)}};
}

ast::Target Parser::parse_target(std::string_view stop_word) {
  ast::Target first = parse_simple_target();
  if (!at_symbol(",")) return first;
  ast::TupleTarget tuple;
  tuple.items.push_back(std::move(first));
  while (skip_symbol(",")) {
    if (at_symbol("=") || at_symbol(")") || (!stop_word.empty() && at_name(stop_word))) break;
    tuple.items.push_back(parse_simple_target());
  }
  return {std::move(tuple)};
}

}  // namespace inferno::jinja
