// Tokens and statements; expression_parser.cpp has the expressions.
#include "chat/jinja/syntax/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace inferno::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end: return "the end of the template";
    case TokenKind::statement_end: return "'%}'";
    case TokenKind::output_end: return "'}}'";
    case TokenKind::string: return "a string";
    case TokenKind::data:
    case TokenKind::statement_begin:
    case TokenKind::output_begin:
    case TokenKind::name:
    case TokenKind::integer:
    case TokenKind::floating:
    case TokenKind::symbol: return fmt::format("'{}'", token.text.substr(0, 40));
  }
  return {};
}

}  // namespace

Program parse(std::string_view source, std::string name, const Budgets& budgets) {
  if (source.size() > budgets.source_bytes) {
    fail(ErrorKind::unsupported, fmt::format("{}: the template has {} bytes, the limit is {}", name,
                                             source.size(), budgets.source_bytes));
  }
  std::vector<Token> tokens = tokenize(source, name);
  return Parser(std::move(tokens), std::move(name), budgets.depth).run();
}

Parser::Parser(std::vector<Token> tokens, std::string name, int depth_limit)
    : tokens_(std::move(tokens)), name_(std::move(name)), depth_limit_(depth_limit) {}

void Parser::Level::deepen() {
  if (parser_.depth_ >= parser_.depth_limit_) {
    fail(ErrorKind::unsupported, fmt::format("{}, line {}: the template exceeds its depth limit of {} levels",
                                             parser_.name_, parser_.current().line, parser_.depth_limit_));
  }
  ++parser_.depth_;
  ++levels_;
}

Program Parser::run() {
  Body body = parse_body({});
  for (const Unknown& unknown : unknown_) {
    if (unknown.tolerated) continue;
    fail(ErrorKind::unsupported, fmt::format("{}, line {}: {}", name_, unknown.line, unknown.description));
  }
  Program program{.name = std::move(name_),
                  .names = std::move(names_),
                  .ids = std::move(ids_),
                  .block = {std::move(body), {}}};
  find_unset_names(program);
  return program;
}

bool Parser::at_symbol(std::string_view text) const {
  return current().kind == TokenKind::symbol && current().text == text;
}

bool Parser::at_name(std::string_view text) const {
  return current().kind == TokenKind::name && current().text == text;
}

bool Parser::skip_symbol(std::string_view text) {
  if (!at_symbol(text)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  take();
  return true;
}

void Parser::refuse(const std::string& problem) const {
  fail(ErrorKind::corrupt,
       fmt::format("{}, line {}: {}, found {}", name_, current().line, problem, describe(current())));
}

void Parser::note_unknown(std::string_view what, const std::string& name) {
  unknown_.push_back(
      {current().line, fmt::format("there is no {} named '{}'", what, name.substr(0, 80)), tolerant_});
}

void Parser::expect_symbol(std::string_view text) {
  if (!skip_symbol(text)) refuse(fmt::format("expected '{}'", text));
}

void Parser::expect_name(std::string_view text) {
  if (!skip_name(text)) refuse(fmt::format("expected '{}'", text));
}

void Parser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) refuse(fmt::format("expected '{}'", what));
  take();
}

std::string Parser::expect_any_name() {
  if (current().kind != TokenKind::name) refuse("expected a name");
  return take().text;
}

NameId Parser::name_id(const std::string& name) {
  const auto [place, added] = ids_.try_emplace(name, static_cast<NameId>(names_.size()));
  if (added) names_.push_back(name);
  return place->second;
}

Body Parser::parse_body(std::initializer_list<std::string_view> ends) {
  const Level level(*this);
  Body body;
  while (true) {
    const int line = current().line;
    switch (current().kind) {
      case TokenKind::data: body.push_back({line, ast::Data{Text::constant(take().text)}}); break;
      case TokenKind::output_begin: {
        take();
        body.push_back({line, ast::Output{parse_tuple(/*with_conditional=*/true)}});
        expect(TokenKind::output_end, "}}");
        break;
      }
      case TokenKind::statement_begin: {
        take();
        for (const std::string_view end : ends) {
          if (at_name(end)) return body;
        }
        body.push_back(parse_statement());
        break;
      }
      case TokenKind::end: {
        if (ends.size() != 0) refuse(fmt::format("expected '{}'", *(ends.end() - 1)));
        return body;
      }
      case TokenKind::statement_end:
      case TokenKind::output_end:
      case TokenKind::name:
      case TokenKind::string:
      case TokenKind::integer:
      case TokenKind::floating:
      case TokenKind::symbol: refuse("expected text or a tag");
    }
  }
}

Body Parser::parse_body_to(std::string_view end) {
  Body body = parse_body({end});
  take();
  end_tag();
  return body;
}

Statement Parser::parse_statement() {
  const int line = current().line;
  if (current().kind != TokenKind::name) refuse("expected the name of a tag");
  const std::string tag = current().text;
  using Parse = Statement (Parser::*)(int);
  static constexpr std::array<std::pair<std::string_view, Parse>, 8> parsers = {
      {{"if", &Parser::parse_if},
       {"for", &Parser::parse_for},
       {"set", &Parser::parse_set},
       {"macro", &Parser::parse_macro},
       {"call", &Parser::parse_call_block},
       {"filter", &Parser::parse_filter_block},
       {"with", &Parser::parse_with},
       {"generation", &Parser::parse_generation}}};
  for (const auto& [name, parse_tag] : parsers) {
    if (name != tag) continue;
    take();
    return (this->*parse_tag)(line);
  }
  if (tag == "break" || tag == "continue") return parse_loop_control(line, tag == "break");
  if (tag == "print") {
    take();
    ast::Output output{parse_tuple(/*with_conditional=*/true)};
    end_tag();
    return {line, std::move(output)};
  }
  if (tag.starts_with("end") || tag == "else" || tag == "elif") refuse("unexpected tag");
  fail(ErrorKind::unsupported,
       fmt::format("{}, line {}: the tag '{}' is not supported", name_, line, tag.substr(0, 80)));
}

Statement Parser::parse_if(int line) {
  ast::If statement;
  const Tolerance tolerant(*this, true);
  while (true) {
    ExpressionPtr test = parse_tuple(/*with_conditional=*/false);
    end_tag();
    statement.branches.push_back({std::move(test), parse_body({"elif", "else", "endif"})});
    if (skip_name("elif")) continue;
    if (skip_name("else")) {
      end_tag();
      statement.otherwise = parse_body({"endif"});
    }
    expect_name("endif");
    end_tag();
    return {line, std::move(statement)};
  }
}

Statement Parser::parse_for(int line) {
  ast::Target target = parse_target("in");
  expect_name("in");
  ExpressionPtr iterable = parse_tuple(/*with_conditional=*/false, "recursive");
  const Tolerance strict(*this, false);
  ExpressionPtr test = skip_name("if") ? parse_expression() : nullptr;
  const bool recursive = skip_name("recursive");
  end_tag();
  ++loops_;
  Body body = parse_body({"else", "endfor"});
  --loops_;
  Body otherwise;
  if (skip_name("else")) {
    end_tag();
    otherwise = parse_body({"endfor"});
  }
  expect_name("endfor");
  end_tag();
  return {line, ast::For{.target = std::move(target),
                         .iterable = std::move(iterable),
                         .test = std::move(test),
                         .recursive = recursive,
                         .block = {std::move(body), {}},
                         .otherwise = {std::move(otherwise), {}}}};
}

Statement Parser::parse_set(int line) {
  ast::Target target = parse_target({});
  if (skip_symbol("=")) {
    ExpressionPtr value = parse_tuple(/*with_conditional=*/true);
    end_tag();
    return {line, ast::Set{std::move(target), std::move(value)}};
  }
  const Tolerance strict(*this, false);
  std::vector<FilterCall> filters;
  while (skip_symbol("|")) filters.push_back(parse_filter_call());
  end_tag();
  return {line, ast::SetBlock{std::move(target), std::move(filters), {parse_captured_body("endset"), {}}}};
}

// A break cannot leave a block whose output is captured.
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
  const Tolerance strict(*this, false);
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
  const Tolerance strict(*this, false);
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
  const Tolerance strict(*this, false);
  with.block.body = parse_body_to("endwith");
  return {line, std::move(with)};
}

Statement Parser::parse_generation(int line) {
  end_tag();
  const Tolerance strict(*this, false);
  return {line, ast::Generation{{parse_captured_body("endgeneration"), {}}}};
}

Statement Parser::parse_loop_control(int line, bool breaks) {
  if (loops_ == 0) refuse("break or continue outside of a loop");
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
