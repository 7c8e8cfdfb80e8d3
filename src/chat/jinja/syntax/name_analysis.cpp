// Jinja2 decides at compile time which names are local to a block. A name that a block assigns before it
// reads it is undefined until then, even if the conversation has a variable of that name: a loop before
// "{% set tools = … %}" does not see the `tools` that were passed in. Templates rely on this, so this pass
// finds those names.
#include <fmt/format.h>

#include <map>
#include <set>
#include <span>

#include "chat/jinja/syntax/ast.h"

namespace inferno::jinja {
namespace {

// The names one block refers to, and whether they are undefined on entry. Follows jinja2.idtracking.Symbols.
// A branch of a condition starts from the names known before it and holds only what it adds.
class BlockNames {
 public:
  explicit BlockNames(const BlockNames* outer, const BlockNames* before = nullptr)
      : outer_(outer), before_(before) {}
  BlockNames branch() const { return BlockNames(outer_, this); }

  bool knows(NameId id) const { return refers_to(id) || (outer_ != nullptr && outer_->knows(id)); }
  void read(NameId id) {
    if (!knows(id)) known_[id] = false;
  }
  void assign(NameId id) {
    assigned_.insert(id);
    if (!refers_to(id)) known_[id] = outer_ == nullptr || !outer_->knows(id);
  }
  void declare(NameId id) {
    assigned_.insert(id);
    known_[id] = false;
  }

  // After the branches of a condition. A name that only some branches assign keeps its outer value on entry.
  void merge(std::span<const BlockNames> branches) {
    std::map<NameId, std::size_t> counts;
    for (const BlockNames& branch : branches) {
      for (const NameId id : branch.assigned_) counts[id] += assigns(id) ? 0 : 1;
    }
    for (const BlockNames& branch : branches) {
      for (const auto& [id, is_unset] : branch.known_) known_[id] = is_unset;
      assigned_.insert(branch.assigned_.begin(), branch.assigned_.end());
    }
    for (const auto& [id, count] : counts) {
      if (count > 0 && count < branches.size()) known_[id] = false;
    }
  }

  std::vector<NameId> unset() const {
    std::vector<NameId> ids;
    for (const auto& [id, is_unset] : known_) {
      if (is_unset) ids.push_back(id);
    }
    return ids;
  }

 private:
  bool refers_to(NameId id) const {
    return known_.contains(id) || (before_ != nullptr && before_->refers_to(id));
  }
  bool assigns(NameId id) const {
    return assigned_.contains(id) || (before_ != nullptr && before_->assigns(id));
  }

  const BlockNames* outer_;
  const BlockNames* before_;
  std::map<NameId, bool> known_;  // true: undefined on entry
  std::set<NameId> assigned_;
};

// Collects the names that an expression reads.
class Reader {
 public:
  explicit Reader(BlockNames& names) : names_(names) {}

  void visit(const ExpressionPtr& expression) {
    if (expression) std::visit([this](const auto& kind) { read(kind); }, expression->kind);
  }
  void visit(const CallArguments& arguments) {
    for (const ExpressionPtr& argument : arguments.positional) visit(argument);
    for (const auto& [name, argument] : arguments.named) visit(argument);
    visit(arguments.spread);
    visit(arguments.spread_named);
  }

 private:
  void read(const ast::Constant&) {}
  void read(const ast::Name& name) { names_.read(name.id); }
  void read(const ast::SequenceLiteral& literal) {
    for (const ExpressionPtr& item : literal.items) visit(item);
  }
  void read(const ast::DictLiteral& literal) {
    for (const auto& [key, value] : literal.entries) {
      visit(key);
      visit(value);
    }
  }
  void read(const ast::Attribute& attribute) { visit(attribute.object); }
  void read(const ast::Subscript& subscript) {
    visit(subscript.object);
    visit(subscript.index);
  }
  void read(const ast::Slice& slice) {
    for (const ExpressionPtr* part : {&slice.object, &slice.start, &slice.stop, &slice.step}) visit(*part);
  }
  void read(const ast::Call& call) {
    visit(call.callee);
    visit(call.arguments);
  }
  void read(const ast::Filter& filter) {
    visit(filter.input);
    visit(filter.call.arguments);
  }
  void read(const ast::Test& test) {
    visit(test.input);
    visit(test.arguments);
  }
  void read(const ast::Conditional& conditional) {
    for (const ExpressionPtr* part : {&conditional.test, &conditional.then, &conditional.otherwise})
      visit(*part);
  }
  void read(const ast::Logic& logic) {
    for (const ExpressionPtr& operand : logic.operands) visit(operand);
  }
  void read(const ast::Not& expression) { visit(expression.operand); }
  void read(const ast::Sign& sign) { visit(sign.operand); }
  void read(const ast::Compare& comparison) {
    visit(comparison.first);
    for (const auto& [operation, operand] : comparison.rest) visit(operand);
  }
  void read(const ast::Arithmetic& chain) {
    visit(chain.first);
    for (const auto& [operation, operand] : chain.rest) visit(operand);
  }
  void read(const ast::Concat& concat) {
    for (const ExpressionPtr& part : concat.parts) visit(part);
  }

  BlockNames& names_;
};

// The names a body reads and assigns itself, not those of the blocks inside it.
class Collector {
 public:
  explicit Collector(BlockNames& names) : names_(names) {}

  void visit(const Body& body) {
    for (const Statement& statement : body) {
      std::visit([this](const auto& kind) { collect(kind); }, statement.kind);
    }
  }
  void assign(const ast::Target& target) {
    if (const auto* name = std::get_if<ast::NameTarget>(&target.kind)) return names_.assign(name->id);
    if (const auto* place = std::get_if<ast::NamespaceTarget>(&target.kind)) return names_.read(place->id);
    for (const ast::Target& item : std::get<ast::TupleTarget>(target.kind).items) assign(item);
  }
  void read(const ExpressionPtr& expression) { Reader(names_).visit(expression); }

 private:
  void read(const std::vector<FilterCall>& filters) {
    for (const FilterCall& filter : filters) Reader(names_).visit(filter.arguments);
  }
  void collect(const ast::Data&) {}
  void collect(const ast::Output& output) { read(output.value); }
  void collect(const ast::If& statement) {
    read(statement.branches.front().test);
    BlockNames branches[] = {names_.branch(), names_.branch(), names_.branch()};
    Collector(branches[0]).visit(statement.branches.front().body);
    for (std::size_t i = 1; i < statement.branches.size(); ++i) {
      Collector(branches[1]).collect_alternative(statement.branches[i]);
    }
    Collector(branches[2]).visit(statement.otherwise);
    names_.merge(branches);
  }
  void collect_alternative(const ast::Branch& branch) {
    read(branch.test);
    BlockNames branches[] = {names_.branch(), names_.branch(), names_.branch()};
    Collector(branches[0]).visit(branch.body);
    names_.merge(branches);
  }
  void collect(const ast::For& statement) { read(statement.iterable); }
  void collect(const ast::Set& statement) {
    read(statement.value);
    assign(statement.target);
  }
  void collect(const ast::SetBlock& statement) {
    read(statement.filters);
    assign(statement.target);
  }
  void collect(const ast::MacroDefinition& definition) { names_.assign(definition.macro->id); }
  void collect(const ast::CallBlock& block) { read(block.call); }
  void collect(const ast::FilterBlock& block) { read(block.filters); }
  void collect(const ast::With& with) {
    for (const auto& [target, value] : with.bindings) read(value);
  }
  void collect(const ast::Generation&) {}
  void collect(const ast::Break&) {}
  void collect(const ast::Continue&) {}

  BlockNames& names_;
};

// Visits blocks from the outside in, because an inner block needs the complete names of the outer ones.
class Analysis {
 public:
  explicit Analysis(const Program& program) : program_(program) {}

  void finish(Block& block, BlockNames& names) {
    Collector(names).visit(block.body);
    for (const NameId id : names.unset()) {
      block.unset.emplace_back(id, undefined(fmt::format("'{}' is undefined", program_.names[id])));
    }
    descend(block.body, names);
  }

 private:
  void declare(const ast::Target& target, BlockNames& names) {
    if (const auto* name = std::get_if<ast::NameTarget>(&target.kind)) names.declare(name->id);
    if (const auto* tuple = std::get_if<ast::TupleTarget>(&target.kind)) {
      for (const ast::Target& item : tuple->items) declare(item, names);
    }
  }

  void finish_plain(Block& block, const BlockNames& outer) {
    BlockNames names(&outer);
    finish(block, names);
  }

  void finish_macro(ast::Macro& macro, const BlockNames& outer) {
    BlockNames names(&outer);
    for (const ast::Parameter& parameter : macro.parameters) names.declare(parameter.id);
    for (const auto& special : {macro.varargs, macro.kwargs, macro.caller}) {
      if (special) names.declare(*special);
    }
    for (const ast::Parameter& parameter : macro.parameters) Collector(names).read(parameter.otherwise);
    finish(macro.block, names);
  }

  void descend(Body& body, const BlockNames& names) {
    for (Statement& statement : body) {
      std::visit([&](auto& kind) { descend(kind, names); }, statement.kind);
    }
  }
  void descend(ast::If& statement, const BlockNames& names) {
    for (ast::Branch& branch : statement.branches) descend(branch.body, names);
    descend(statement.otherwise, names);
  }
  void descend(ast::For& statement, const BlockNames& outer) {
    BlockNames names(&outer);
    declare(statement.target, names);
    if (const auto loop = program_.ids.find("loop"); loop != program_.ids.end()) names.declare(loop->second);
    finish(statement.block, names);
    finish_plain(statement.otherwise, outer);
  }
  void descend(ast::SetBlock& statement, const BlockNames& outer) { finish_plain(statement.block, outer); }
  void descend(ast::FilterBlock& block, const BlockNames& outer) { finish_plain(block.block, outer); }
  void descend(ast::Generation& block, const BlockNames& outer) { finish_plain(block.block, outer); }
  void descend(ast::MacroDefinition& definition, const BlockNames& outer) {
    finish_macro(*definition.macro, outer);
  }
  void descend(ast::CallBlock& block, const BlockNames& outer) { finish_macro(*block.macro, outer); }
  void descend(ast::With& with, const BlockNames& outer) {
    BlockNames names(&outer);
    for (const auto& [target, value] : with.bindings) declare(target, names);
    finish(with.block, names);
  }
  void descend(ast::Data&, const BlockNames&) {}
  void descend(ast::Output&, const BlockNames&) {}
  void descend(ast::Set&, const BlockNames&) {}
  void descend(ast::Break&, const BlockNames&) {}
  void descend(ast::Continue&, const BlockNames&) {}

  const Program& program_;
};

}  // namespace

void find_unset_names(Program& program) {
  BlockNames names(nullptr);
  Analysis(program).finish(program.block, names);
}

}  // namespace inferno::jinja
