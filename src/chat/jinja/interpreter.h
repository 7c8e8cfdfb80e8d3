// Walks a parsed template and writes its output. One interpreter per rendering, on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/syntax/ast.h"

namespace inferno::jinja {

// The names of one block, such as an iteration of a loop or a call of a macro. Lookups continue in the outer
// scope; assignments stay here.
struct Scope {
  std::shared_ptr<Scope> outer;  // null: the template's global names are next
  std::vector<std::pair<NameId, Value>> names;

  const Value* find(NameId id) const;
  void set(NameId id, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

using LocalClock = std::function<std::chrono::local_seconds()>;

class Interpreter {
 public:
  Interpreter(const Program& program, Meter& meter, LocalClock clock);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Whether the template mentions the name.
  bool reads(const std::string& name) const;
  // A variable the template may read. Call before run().
  void define(const std::string& name, Value value);
  Text run();

  // For builtins.
  Meter& meter() { return meter_; }
  std::chrono::local_seconds now() const { return clock_(); }
  Value call(const Value& callee, const Arguments& arguments);
  Value make_namespace(std::vector<std::pair<std::string, Value>> attributes);
  Value loop_attribute(const std::shared_ptr<LoopState>& loop, std::string_view name);

 private:
  enum class Flow { next, break_loop, continue_loop };
  // Guards the C++ stack: every level of evaluation counts, so that nested source times nested macro calls
  // needs only a few megabytes of stack.
  class Frame {
   public:
    explicit Frame(Interpreter& interpreter);
    ~Frame() { --interpreter_.frames_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Interpreter& interpreter_;
  };

  // Statements
  Flow execute(const Body& body, const ScopePtr& scope, Text& out);
  Flow execute(const Statement& statement, const ScopePtr& scope, Text& out);
  void write(Text& out, const Text& text);
  Flow execute(const Block& block, const ScopePtr& own_scope, Text& out);
  Text capture(const Block& block, const ScopePtr& scope);
  void assign(const ast::Target& target, const Value& value, const ScopePtr& scope);
  void set_name(NameId id, Value value, const ScopePtr& scope);
  Flow run(const ast::Data& data, const ScopePtr& scope, Text& out);
  Flow run(const ast::Output& output, const ScopePtr& scope, Text& out);
  Flow run(const ast::If& statement, const ScopePtr& scope, Text& out);
  Flow run(const ast::For& statement, const ScopePtr& scope, Text& out);
  Flow run(const ast::Set& statement, const ScopePtr& scope, Text& out);
  Flow run(const ast::SetBlock& statement, const ScopePtr& scope, Text& out);
  Flow run(const ast::MacroDefinition& definition, const ScopePtr& scope, Text& out);
  Flow run(const ast::CallBlock& block, const ScopePtr& scope, Text& out);
  Flow run(const ast::FilterBlock& block, const ScopePtr& scope, Text& out);
  Flow run(const ast::With& with, const ScopePtr& scope, Text& out);
  Flow run(const ast::Generation& block, const ScopePtr& scope, Text& out);
  Flow run(const ast::Break& statement, const ScopePtr& scope, Text& out);
  Flow run(const ast::Continue& statement, const ScopePtr& scope, Text& out);

  // Loops
  Flow run_loop(const ast::For& statement, const Value& iterable, std::int64_t depth0, const ScopePtr& scope,
                Text& out);
  Value collect(const ast::Target& target, const ScopePtr& scope);
  std::optional<Value> draw(LoopState& loop);
  std::optional<Value> next_item(LoopState& loop);
  const Value* peek(LoopState& loop);
  std::int64_t loop_length(LoopState& loop);

  // str() of anything, `loop` included.
  Text print(const Value& value);

  // Calls (expressions.cpp)
  Value call_loop(const LoopState& loop, const Arguments& arguments);
  Value call_macro(const MacroValue& macro, const Arguments& arguments);
  void bind_parameters(const ast::Macro& macro, const Arguments& arguments, const ScopePtr& scope);
  void bind_special(const ast::Macro& macro, Arguments left, const ScopePtr& scope);
  Value make_macro(std::shared_ptr<const ast::Macro> macro, const ScopePtr& scope);
  Arguments evaluate(const CallArguments& arguments, const ScopePtr& scope);
  Value apply(const FilterCall& filter, const Value& input, const ScopePtr& scope);

  // Expressions (expressions.cpp)
  Value evaluate(const Expression& expression, const ScopePtr& scope);
  Value lookup(NameId id, const ScopePtr& scope);
  Value eval(const ast::Constant& constant, const ScopePtr& scope);
  Value eval(const ast::Name& name, const ScopePtr& scope);
  Value eval(const ast::SequenceLiteral& literal, const ScopePtr& scope);
  Value eval(const ast::DictLiteral& literal, const ScopePtr& scope);
  Value eval(const ast::Attribute& attribute, const ScopePtr& scope);
  Value eval(const ast::Subscript& subscript, const ScopePtr& scope);
  Value eval(const ast::Slice& slice, const ScopePtr& scope);
  Value eval(const ast::Call& call, const ScopePtr& scope);
  Value eval(const ast::Filter& filter, const ScopePtr& scope);
  Value eval(const ast::Test& test, const ScopePtr& scope);
  Value eval(const ast::Conditional& conditional, const ScopePtr& scope);
  Value eval(const ast::Logic& logic, const ScopePtr& scope);
  Value eval(const ast::Not& expression, const ScopePtr& scope);
  Value eval(const ast::Sign& sign, const ScopePtr& scope);
  Value eval(const ast::Compare& comparison, const ScopePtr& scope);
  Value eval(const ast::Arithmetic& arithmetic, const ScopePtr& scope);
  Value eval(const ast::Concat& concat, const ScopePtr& scope);
  Value attribute_of(const Value& object, std::string_view name);

  const Program& program_;
  Meter& meter_;
  LocalClock clock_;
  std::optional<NameId> loop_name_;            // of `loop`, if the template mentions it
  std::vector<std::optional<Value>> globals_;  // by NameId: the given variables, and what the template sets
  int frames_ = 0;
  int macro_depth_ = 0;
  // Objects that can be part of a reference cycle; emptied at the end.
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<ScopePtr> captured_scopes_;
};

}  // namespace inferno::jinja
