// Splits a template into tokens (lexer.cpp) and builds the tree from them, by Jinja2's grammar. Tags that
// Jinja2 has and this parser does not (include, import, extends, block) are refused by name, never skipped.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chat/jinja/syntax/ast.h"
#include "chat/jinja/value/meter.h"

namespace inferno::jinja {

// The lexer splits a template into the text between tags and the tokens inside them, with Jinja2's whitespace
// rules as Hugging Face configures them: trim_blocks and lstrip_blocks on, one final newline dropped.
enum class TokenKind : unsigned char {
  data,
  statement_begin,
  statement_end,
  output_begin,
  output_end,
  name,
  string,
  integer,
  floating,
  symbol,  // an operator or bracket
  end,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data as printed, names and symbols as written, strings with escapes resolved
};

// `name` is the template's, for messages. Error{corrupt} naming the line if a tag, a string or a comment is
// not closed, or for a character that is not allowed inside a tag.
std::vector<Token> tokenize(std::string_view source, std::string_view name);

// Error{corrupt} for a template that Jinja2 would reject, too; Error{unsupported} for an unknown tag, filter
// or test and for a template that exceeds its size or depth budget. Messages name the line.
Program parse(std::string_view source, std::string name, const Budgets& budgets);

// One pass over the tokens, one per template.
class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string name, int depth_limit);
  Program run();

 private:
  // Counts levels of nesting during its lifetime.
  class Level {
   public:
    explicit Level(Parser& parser, int levels = 1) : parser_(parser) {
      if (levels > 0) deepen();
    }
    ~Level() { parser_.depth_ -= levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    void deepen();

   private:
    Parser& parser_;
    int levels_ = 0;
  };
  // Whether an unknown filter is an error only if it is evaluated; see FilterCall.
  class Tolerance {
   public:
    Tolerance(Parser& parser, bool tolerant) : parser_(parser), before_(parser.tolerant_) {
      parser.tolerant_ = tolerant;
    }
    ~Tolerance() { parser_.tolerant_ = before_; }
    Tolerance(const Tolerance&) = delete;
    Tolerance& operator=(const Tolerance&) = delete;

   private:
    Parser& parser_;
    bool before_;
  };

  // Tokens (parser.cpp)
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_symbol(std::string_view text) const;
  bool at_name(std::string_view text) const;
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);
  void expect(TokenKind kind, std::string_view what);
  std::string expect_any_name();
  [[noreturn]] void refuse(const std::string& problem) const;
  void note_unknown(std::string_view what, const std::string& name);
  NameId name_id(const std::string& name);

  // Statements (parser.cpp)
  // Up to a tag that begins with one of `ends`; only its "{%" is consumed.
  Body parse_body(std::initializer_list<std::string_view> ends);
  Body parse_body_to(std::string_view end);  // consumes the end tag, too
  Body parse_captured_body(std::string_view end);
  void end_tag() { expect(TokenKind::statement_end, "%}"); }
  Statement parse_statement();
  Statement parse_if(int line);
  Statement parse_for(int line);
  Statement parse_set(int line);
  Statement parse_macro(int line);
  Statement parse_call_block(int line);
  Statement parse_filter_block(int line);
  Statement parse_with(int line);
  Statement parse_generation(int line);
  Statement parse_loop_control(int line, bool breaks);
  std::vector<ast::Parameter> parse_parameters();
  std::shared_ptr<ast::Macro> parse_macro_body(ast::Macro macro, std::string_view end);
  ast::Target parse_target(std::string_view stop_word);
  ast::Target parse_simple_target();

  // Expressions (expression_parser.cpp)
  ExpressionPtr parse_expression();
  ExpressionPtr parse_tuple(bool with_conditional, std::string_view stop_word = {},
                            bool may_be_empty = false);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_filtered();
  ExpressionPtr parse_unary();
  // One level of precedence: operands joined by operators of the table, or by the word.
  using ParseOperand = ExpressionPtr (Parser::*)();
  using Operators = std::span<const std::pair<std::string_view, ArithmeticOperator>>;
  ExpressionPtr parse_chain(Operators operators, ParseOperand parse_operand);
  ExpressionPtr parse_logic(std::string_view word, bool is_and, ParseOperand parse_operand);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name(const Token& token);
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr operand);
  ExpressionPtr parse_filters(ExpressionPtr operand);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_test(ExpressionPtr operand);
  FilterCall parse_filter_call();
  bool at_test_argument() const;
  std::string parse_dotted_name();
  CallArguments parse_arguments();
  bool ends_tuple(std::string_view stop_word) const;

  std::vector<Token> tokens_;
  std::string name_;
  std::size_t at_ = 0;
  int depth_limit_;
  int depth_ = 0;
  int loops_ = 0;
  bool tolerant_ = false;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
  // The special names used by each macro being parsed, innermost last.
  struct SpecialNames {
    bool varargs = false, kwargs = false, caller = false;
  };
  std::vector<SpecialNames> macros_;
  // Filters and tests that do not exist. The template is refused unless all are tolerated.
  struct Unknown {
    int line;
    std::string description;
    bool tolerated;
  };
  std::vector<Unknown> unknown_;
};

}  // namespace inferno::jinja
