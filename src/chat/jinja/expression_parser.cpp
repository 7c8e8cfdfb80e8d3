// Expressions, one function per level of Jinja2's precedence.
#include "chat/jinja/literals.h"
#include "chat/jinja/parser.h"

namespace inferno::jinja {
namespace {

template <class Kind>
ExpressionPtr make(int line, Kind kind) {
  return std::make_unique<const Expression>(Expression{line, std::move(kind)});
}

template <class Operator, std::size_t count>
std::optional<Operator> find_operator(const Token& token,
                                      const std::pair<std::string_view, Operator> (&table)[count]) {
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
    for (std::size_t i = first_unknown; i < unknown_.size(); ++i) unknown_[i].soft = true;
    const Softness soft(*this, true);
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

ExpressionPtr Parser::parse_or() {
  const int line = current().line;
  ExpressionPtr first = parse_and();
  if (!at_name("or")) return first;
  ast::Logic logic{.is_and = false, .operands = {}};
  logic.operands.push_back(std::move(first));
  while (skip_name("or")) logic.operands.push_back(parse_and());
  return make(line, std::move(logic));
}

ExpressionPtr Parser::parse_and() {
  const int line = current().line;
  ExpressionPtr first = parse_not();
  if (!at_name("and")) return first;
  ast::Logic logic{.is_and = true, .operands = {}};
  logic.operands.push_back(std::move(first));
  while (skip_name("and")) logic.operands.push_back(parse_not());
  return make(line, std::move(logic));
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
    if (const auto found = find_operator(current(), comparisons)) {
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

ExpressionPtr Parser::parse_sum() {
  const int line = current().line;
  ExpressionPtr first = parse_concat();
  ast::Arithmetic chain;
  while (const auto found = find_operator(current(), sums)) {
    take();
    chain.rest.emplace_back(*found, parse_concat());
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(line, std::move(chain));
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
  const int line = current().line;
  ExpressionPtr first = parse_power();
  ast::Arithmetic chain;
  while (const auto found = find_operator(current(), products)) {
    take();
    chain.rest.emplace_back(*found, parse_power());
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(line, std::move(chain));
}

ExpressionPtr Parser::parse_power() {
  const int line = current().line;
  ExpressionPtr first = parse_unary(/*with_filter=*/true);
  ast::Arithmetic chain;
  while (const auto found = find_operator(current(), powers)) {
    take();
    chain.rest.emplace_back(*found, parse_unary(/*with_filter=*/true));
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(line, std::move(chain));
}

ExpressionPtr Parser::parse_unary(bool with_filter) {
  const int line = current().line;
  ExpressionPtr operand;
  if (at_symbol("-") || at_symbol("+")) {
    const Level level(*this);
    const bool negative = take().text == "-";
    operand = make(line, ast::Sign{negative, parse_unary(/*with_filter=*/false)});
  } else {
    operand = parse_primary();
  }
  operand = parse_postfix(std::move(operand));
  return with_filter ? parse_filters(std::move(operand)) : std::move(operand);
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
    if (!value) refuse("this integer does not fit 64 bits");
    take();
    return make(line, ast::Constant{*value});
  }
  if (current().kind == TokenKind::floating) {
    return make(line, ast::Constant{parse_float_literal(take().text)});
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

}  // namespace inferno::jinja
