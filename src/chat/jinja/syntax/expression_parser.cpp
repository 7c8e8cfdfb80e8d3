// Expressions, one function per level of Jinja2's precedence, then what may follow an operand: attributes,
// subscripts, calls, filters and tests.
#include <fmt/format.h>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/syntax/parser.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

// nullopt if the number does not fit into 64 bits.
std::optional<std::int64_t> parse_integer_literal(std::string_view spelling) {
  bool overflowed = false;
  const auto value = parse_int(spelling, /*base=*/0, overflowed);
  return overflowed ? std::nullopt : value;
}

template <class Kind>
ExpressionPtr make(int line, Kind kind) {
  return std::make_unique<const Expression>(Expression{line, std::move(kind)});
}

template <class Operator>
std::optional<Operator> find_operator(const Token& token,
                                      std::span<const std::pair<std::string_view, Operator>> table) {
  if (token.kind != TokenKind::symbol) return std::nullopt;
  for (const auto& [text, meaning] : table) {
    if (token.text == text) return meaning;
  }
  return std::nullopt;
}

constexpr std::pair<std::string_view, CompareOperator> comparisons[] = {
    {"==", CompareOperator::equal},  {"!=", CompareOperator::not_equal},
    {"<", CompareOperator::less},    {"<=", CompareOperator::less_equal},
    {">", CompareOperator::greater}, {">=", CompareOperator::greater_equal}};
constexpr std::pair<std::string_view, ArithmeticOperator> sums[] = {{"+", ArithmeticOperator::add},
                                                                    {"-", ArithmeticOperator::subtract}};
constexpr std::pair<std::string_view, ArithmeticOperator> products[] = {
    {"*", ArithmeticOperator::multiply},
    {"/", ArithmeticOperator::divide},
    {"//", ArithmeticOperator::floor_divide},
    {"%", ArithmeticOperator::modulo}};
constexpr std::pair<std::string_view, ArithmeticOperator> powers[] = {{"**", ArithmeticOperator::power}};

}  // namespace

ExpressionPtr Parser::parse_expression() {
  Level level(*this);
  const int line = current().line;
  const std::size_t first_unknown = unknown_.size();
  ExpressionPtr value = parse_or();
  while (skip_name("if")) {
    level.deepen();
    for (std::size_t i = first_unknown; i < unknown_.size(); ++i) unknown_[i].tolerated = true;
    const Tolerance tolerant(*this, true);
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise = skip_name("else") ? parse_expression() : nullptr;
    value = make(line, ast::Conditional{std::move(test), std::move(value), std::move(otherwise)});
  }
  return value;
}

bool Parser::ends_tuple(std::string_view stop_word) const {
  return current().kind == TokenKind::output_end || current().kind == TokenKind::statement_end ||
         at_symbol(")") || (!stop_word.empty() && at_name(stop_word));
}

ExpressionPtr Parser::parse_tuple(bool with_conditional, std::string_view stop_word, bool may_be_empty) {
  const int line = current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_symbol(",");
    if (ends_tuple(stop_word)) break;
    items.push_back(with_conditional ? parse_expression() : parse_or());
    if (!at_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items.front());
    if (!may_be_empty) refuse("expected an expression");
  }
  return make(line, ast::SequenceLiteral{SequenceKind::tuple, std::move(items)});
}

ExpressionPtr Parser::parse_logic(std::string_view word, bool is_and, ParseOperand parse_operand) {
  const int line = current().line;
  ExpressionPtr first = (this->*parse_operand)();
  if (!at_name(word)) return first;
  ast::Logic logic{.is_and = is_and, .operands = {}};
  logic.operands.push_back(std::move(first));
  while (skip_name(word)) logic.operands.push_back((this->*parse_operand)());
  return make(line, std::move(logic));
}

ExpressionPtr Parser::parse_or() {
  return parse_logic("or", /*is_and=*/false, &Parser::parse_and);
}

ExpressionPtr Parser::parse_and() {
  return parse_logic("and", /*is_and=*/true, &Parser::parse_not);
}

ExpressionPtr Parser::parse_not() {
  const int line = current().line;
  if (!skip_name("not")) return parse_compare();
  const Level level(*this);
  return make(line, ast::Not{parse_not()});
}

ExpressionPtr Parser::parse_compare() {
  const int line = current().line;
  ExpressionPtr first = parse_sum();
  ast::Compare compare;
  while (true) {
    CompareOperator operation{};
    if (const auto found = find_operator<CompareOperator>(current(), comparisons)) {
      take();
      operation = *found;
    } else if (skip_name("in")) {
      operation = CompareOperator::in;
    } else if (at_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
      take();
      take();
      operation = CompareOperator::not_in;
    } else {
      break;
    }
    compare.rest.emplace_back(operation, parse_sum());
  }
  if (compare.rest.empty()) return first;
  compare.first = std::move(first);
  return make(line, std::move(compare));
}

ExpressionPtr Parser::parse_chain(Operators operators, ParseOperand parse_operand) {
  const int line = current().line;
  ExpressionPtr first = (this->*parse_operand)();
  ast::Arithmetic chain;
  while (const auto found = find_operator<ArithmeticOperator>(current(), operators)) {
    take();
    chain.rest.emplace_back(*found, (this->*parse_operand)());
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(line, std::move(chain));
}

ExpressionPtr Parser::parse_sum() {
  return parse_chain(sums, &Parser::parse_concat);
}

ExpressionPtr Parser::parse_concat() {
  const int line = current().line;
  ExpressionPtr first = parse_product();
  if (!at_symbol("~")) return first;
  ast::Concat concat;
  concat.parts.push_back(std::move(first));
  while (skip_symbol("~")) concat.parts.push_back(parse_product());
  return make(line, std::move(concat));
}

ExpressionPtr Parser::parse_product() {
  return parse_chain(products, &Parser::parse_power);
}

ExpressionPtr Parser::parse_power() {
  return parse_chain(powers, &Parser::parse_filtered);
}

ExpressionPtr Parser::parse_filtered() {
  return parse_filters(parse_unary());
}

ExpressionPtr Parser::parse_unary() {
  const int line = current().line;
  ExpressionPtr operand;
  if (at_symbol("-") || at_symbol("+")) {
    const Level level(*this);
    const bool negative = take().text == "-";
    operand = make(line, ast::Sign{negative, parse_unary()});
  } else {
    operand = parse_primary();
  }
  return parse_postfix(std::move(operand));
}

ExpressionPtr Parser::parse_name(const Token& token) {
  if (token.text == "true" || token.text == "True") return make(token.line, ast::Constant{true});
  if (token.text == "false" || token.text == "False") return make(token.line, ast::Constant{false});
  if (token.text == "none" || token.text == "None") return make(token.line, ast::Constant{None{}});
  for (SpecialNames& names : macros_) {
    names.varargs |= token.text == "varargs";
    names.kwargs |= token.text == "kwargs";
    names.caller |= token.text == "caller";
  }
  return make(token.line, ast::Name{name_id(token.text)});
}

ExpressionPtr Parser::parse_primary() {
  const int line = current().line;
  if (current().kind == TokenKind::name) return parse_name(take());
  if (current().kind == TokenKind::string) {
    std::string text;
    while (current().kind == TokenKind::string) text += take().text;
    return make(line, ast::Constant{Text::constant(std::move(text))});
  }
  if (current().kind == TokenKind::integer) {
    const auto value = parse_integer_literal(current().text);
    if (!value) refuse("this integer does not fit into 64 bits");
    take();
    return make(line, ast::Constant{*value});
  }
  if (current().kind == TokenKind::floating) {
    return make(line, ast::Constant{*parse_float(take().text)});
  }
  if (skip_symbol("(")) {
    ExpressionPtr inner = parse_tuple(/*with_conditional=*/true, {}, /*may_be_empty=*/true);
    expect_symbol(")");
    return inner;
  }
  if (at_symbol("[")) return parse_list();
  if (at_symbol("{")) return parse_dict();
  refuse("expected an expression");
}

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
    if (!index) refuse("this index does not fit into 64 bits");
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
