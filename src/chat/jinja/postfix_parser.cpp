// What follows an operand: attributes, subscripts, calls, filters and tests; and the bracketed literals.
#include <fmt/format.h>

#include "chat/jinja/builtins.h"
#include "chat/jinja/literals.h"
#include "chat/jinja/parser.h"

namespace inferno::jinja {
namespace {

template <class Kind>
ExpressionPtr make(int line, Kind kind) {
  return std::make_unique<const Expression>(Expression{line, std::move(kind)});
}

}  // namespace

ExpressionPtr Parser::parse_list() {
  const int line = current().line;
  ast::SequenceLiteral list{SequenceKind::list, {}};
  expect_symbol("[");
  while (!at_symbol("]")) {
    if (!list.items.empty()) expect_symbol(",");
    if (at_symbol("]")) break;
    list.items.push_back(parse_expression());
  }
  expect_symbol("]");
  return make(line, std::move(list));
}

ExpressionPtr Parser::parse_dict() {
  const int line = current().line;
  ast::DictLiteral dict;
  expect_symbol("{");
  while (!at_symbol("}")) {
    if (!dict.entries.empty()) expect_symbol(",");
    if (at_symbol("}")) break;
    ExpressionPtr key = parse_expression();
    expect_symbol(":");
    dict.entries.emplace_back(std::move(key), parse_expression());
  }
  expect_symbol("}");
  return make(line, std::move(dict));
}

// Each link of a chain nests the tree one deeper, so links count as levels.
ExpressionPtr Parser::parse_postfix(ExpressionPtr operand) {
  Level chain(*this, 0);
  for (;; chain.deepen()) {
    if (at_symbol(".") || at_symbol("[")) {
      operand = parse_subscript(std::move(operand));
    } else if (at_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr Parser::parse_filters(ExpressionPtr operand) {
  Level chain(*this, 0);
  for (;; chain.deepen()) {
    const int line = current().line;
    if (skip_symbol("|")) {
      operand = make(line, ast::Filter{std::move(operand), parse_filter_call()});
    } else if (at_name("is")) {
      operand = parse_test(std::move(operand));
    } else if (at_symbol("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr object) {
  const int line = current().line;
  if (skip_symbol(".")) {
    if (current().kind == TokenKind::name) return make(line, ast::Attribute{std::move(object), take().text});
    if (current().kind != TokenKind::integer) refuse("expected a name or a number after '.'");
    const auto index = parse_integer_literal(take().text);
    if (!index) refuse("this index does not fit 64 bits");
    return make(line, ast::Subscript{std::move(object), make(line, ast::Constant{*index})});
  }
  expect_symbol("[");
  ExpressionPtr parts[3];
  bool is_slice = false;
  for (int part = 0; part < 3; ++part) {
    if (!at_symbol(":") && !at_symbol("]") && !at_symbol(",")) parts[part] = parse_expression();
    if (part == 2 || !skip_symbol(":")) break;
    is_slice = true;
  }
  if (is_slice) {
    expect_symbol("]");
    return make(line,
                ast::Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])});
  }
  std::vector<ExpressionPtr> items;
  if (parts[0]) items.push_back(std::move(parts[0]));
  while (skip_symbol(",")) items.push_back(parse_expression());
  expect_symbol("]");
  if (items.size() == 1) return make(line, ast::Subscript{std::move(object), std::move(items.front())});
  ExpressionPtr tuple = make(line, ast::SequenceLiteral{SequenceKind::tuple, std::move(items)});
  return make(line, ast::Subscript{std::move(object), std::move(tuple)});
}

ExpressionPtr Parser::parse_call(ExpressionPtr callee) {
  const int line = current().line;
  return make(line, ast::Call{std::move(callee), parse_arguments()});
}

CallArguments Parser::parse_arguments() {
  CallArguments arguments;
  expect_symbol("(");
  bool first = true;
  while (!at_symbol(")")) {
    if (!first) {
      expect_symbol(",");
      if (at_symbol(")")) break;
    }
    first = false;
    if (skip_symbol("*")) {
      if (arguments.spread || arguments.spread_named) refuse("misplaced '*' argument");
      arguments.spread = parse_expression();
    } else if (skip_symbol("**")) {
      if (arguments.spread_named) refuse("misplaced '**' argument");
      arguments.spread_named = parse_expression();
    } else if (current().kind == TokenKind::name && ahead().kind == TokenKind::symbol &&
               ahead().text == "=") {
      if (arguments.spread_named) refuse("an argument follows '**'");
      std::string name = take().text;
      take();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (arguments.spread || arguments.spread_named || !arguments.named.empty()) {
        refuse("a positional argument follows a named one");
      }
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_symbol(")");
  return arguments;
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_any_name();
  while (skip_symbol(".")) name += "." + expect_any_name();
  return name;
}

FilterCall Parser::parse_filter_call() {
  FilterCall call;
  call.name = parse_dotted_name();
  call.function = find_filter(call.name);
  if (call.function == nullptr) note_unknown("filter", call.name);
  if (at_symbol("(")) call.arguments = parse_arguments();
  return call;
}

bool Parser::at_test_argument() const {
  switch (current().kind) {
    case TokenKind::name: return !at_name("else") && !at_name("or") && !at_name("and");
    case TokenKind::string:
    case TokenKind::integer:
    case TokenKind::floating: return true;
    case TokenKind::symbol: return at_symbol("[") || at_symbol("{");
    case TokenKind::data:
    case TokenKind::statement_begin:
    case TokenKind::statement_end:
    case TokenKind::output_begin:
    case TokenKind::output_end:
    case TokenKind::end: return false;
  }
  return false;
}

ExpressionPtr Parser::parse_test(ExpressionPtr operand) {
  const int line = current().line;
  expect_name("is");
  const bool negated = skip_name("not");
  std::string name = parse_dotted_name();
  const TestFunction function = find_test(name);
  if (function == nullptr) note_unknown("test", name);
  CallArguments arguments;
  if (at_symbol("(")) {
    arguments = parse_arguments();
  } else if (at_test_argument()) {
    if (at_name("is")) refuse("tests cannot be chained with 'is'");
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  return make(line, ast::Test{.input = std::move(operand),
                              .name = std::move(name),
                              .function = function,
                              .arguments = std::move(arguments),
                              .negated = negated});
}

}  // namespace inferno::jinja
