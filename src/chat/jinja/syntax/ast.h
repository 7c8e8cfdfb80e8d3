// A parsed template. Immutable; chains (a + b + c, x == y == z, elif) are lists, not nested nodes, so the
// tree is only as deep as the brackets and blocks in the source.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value/value.h"

namespace inferno::jinja {

using NameId = std::uint32_t;  // index into Program::names

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Body = std::vector<Statement>;

// Statements with a scope of their own.
struct Block {
  Body body;
  // Names that are assigned here before they are read: undefined on entry, whatever their value outside.
  std::vector<std::pair<NameId, Value>> unset;
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr spread;        // *expression, or null
  ExpressionPtr spread_named;  // **expression, or null
};

// `function` is null for an unknown name inside a conditional branch: Jinja2 fails only if it is evaluated.
struct FilterCall {
  std::string name;
  FilterFunction function;
  CallArguments arguments;
};

namespace ast {

struct Constant {
  Value value;
};
struct Name {
  NameId id;
};
struct SequenceLiteral {
  SequenceKind kind;
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object, start, stop, step;  // the last three may be null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr input;
  FilterCall call;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  TestFunction function;  // null as in FilterCall
  CallArguments arguments;
  bool negated;
};
struct Conditional {
  ExpressionPtr test, then, otherwise;  // otherwise may be null
};
struct Logic {
  bool is_and;
  std::vector<ExpressionPtr> operands;
};
struct Not {
  ExpressionPtr operand;
};
struct Sign {
  bool negative;
  ExpressionPtr operand;
};
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<CompareOperator, ExpressionPtr>> rest;
};
struct Arithmetic {
  ExpressionPtr first;
  std::vector<std::pair<ArithmeticOperator, ExpressionPtr>> rest;
};
struct Concat {
  std::vector<ExpressionPtr> parts;
};

// The target of an assignment or a loop.
struct NameTarget {
  NameId id;
};
struct NamespaceTarget {
  NameId id;
  std::string attribute;
};
struct Target;
struct TupleTarget {
  std::vector<Target> items;
};
struct Target {
  std::variant<NameTarget, NamespaceTarget, TupleTarget> kind;
};

struct Data {
  Text text;
};
struct Output {
  ExpressionPtr value;
};
struct Branch {
  ExpressionPtr test;
  Body body;
};
struct If {
  std::vector<Branch> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr test;  // may be null
  bool recursive;
  Block block, otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  std::vector<FilterCall> filters;
  Block block;
};
struct Parameter {
  NameId id;
  std::string name;
  ExpressionPtr otherwise;  // the default value, or null
};
struct Macro {
  std::string name;
  NameId id;
  std::vector<Parameter> parameters;
  Block block;
  // Set if the body mentions these names without declaring them: only then does Jinja2 provide them.
  std::optional<NameId> varargs, kwargs, caller;
};
struct CallBlock {
  std::shared_ptr<Macro> macro;
  ExpressionPtr call;  // an ast::Call
};
struct FilterBlock {
  std::vector<FilterCall> filters;
  Block block;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Block block;
};
struct Generation {  // {% generation %} marks the model's own output; it prints its body
  Block block;
};
struct MacroDefinition {
  std::shared_ptr<Macro> macro;
};
struct Break {};
struct Continue {};

}  // namespace ast

struct Expression {
  int line;
  std::variant<ast::Constant, ast::Name, ast::SequenceLiteral, ast::DictLiteral, ast::Attribute,
               ast::Subscript, ast::Slice, ast::Call, ast::Filter, ast::Test, ast::Conditional, ast::Logic,
               ast::Not, ast::Sign, ast::Compare, ast::Arithmetic, ast::Concat>
      kind;
};

struct Statement {
  int line;
  std::variant<ast::Data, ast::Output, ast::If, ast::For, ast::Set, ast::SetBlock, ast::MacroDefinition,
               ast::CallBlock, ast::FilterBlock, ast::With, ast::Generation, ast::Break, ast::Continue>
      kind;
};

struct Program {
  std::string name;  // of the template, for messages
  std::vector<std::string> names;
  std::unordered_map<std::string, NameId> ids;  // the inverse of `names`
  Block block;
};

// Fills Block::unset throughout the program; see name_analysis.cpp.
void find_unset_names(Program& program);

}  // namespace inferno::jinja
