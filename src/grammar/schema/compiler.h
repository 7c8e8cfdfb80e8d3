// From a schema to the parts of a constraint.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "grammar/rules.h"
#include "grammar/schema/constraints.h"

namespace inferno::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(const SchemaDocument& document, Rules& rules, Budget& budget)
      : document_(document), rules_(rules), budget_(budget), collector_(document, budget) {}

  Part run();

 private:
  struct Undeclared {
    std::shared_ptr<const Dfa> key;
    Terms value;
  };

  // What many values are compared with, its lists as canonical texts.
  struct Collected {
    Constraints constraints;
    std::unordered_set<std::string> values, excluded;
  };

  Part value_of(const Terms& terms);
  Part build(const Terms& terms);
  void expand(Constraints constraints, std::vector<Part>& ways, int depth);
  std::vector<Terms> exclusive_ways(const Constraints& base, const Alternatives& alternatives);
  bool are_disjoint(const JsonNode& a, const JsonNode& b);
  bool is_obviously_empty(const Constraints& constraints, int depth);

  Part without_alternatives(const Constraints& constraints);
  Part any_value();
  std::vector<const JsonNode*> take_values(Constraints& constraints);
  Part listed_values(const Constraints& constraints);
  Part listed_value(const JsonNode& value);
  Part string_part(const Constraints& constraints);
  Part counted_string(std::shared_ptr<const Dfa> dfa, Counts length, const Constraints& constraints);
  std::shared_ptr<const Dfa> pattern(const JsonNode& node);
  Part number_part(const Constraints& constraints);
  Part array_part(const Constraints& constraints);
  Part object_part(const Constraints& constraints);
  Terms property_terms(const Constraints& constraints, const std::string& name);
  std::vector<Undeclared> undeclared_keys(const Constraints& constraints, const NameList& declared);
  void split_by_rule(std::vector<Undeclared>& groups, const Constraints::ObjectRule& rule);
  std::shared_ptr<const Dfa> name_pattern(const JsonNode& patterns, std::size_t index);
  std::shared_ptr<const Dfa> name_automaton(const JsonNode& schema);
  bool name_fits(const Constraints& constraints, const std::string& name);

  // Whether a value of the schema itself (of enum or const) satisfies all of it.
  bool holds(const Terms& terms, const JsonNode& value, int depth);
  // The same without the lists: `values` and `excluded`.
  bool holds_beside_lists(const Constraints& constraints, const JsonNode& value, int depth);
  bool holds_for_string(const Constraints& constraints, const JsonNode& value);
  bool holds_for_number(const Constraints& constraints, const JsonNode& value);
  bool holds_for_array(const Constraints& constraints, const JsonNode& value, int depth);
  bool holds_for_object(const Constraints& constraints, const JsonNode& value, int depth);
  const Collected& collected(const Terms& terms);

  const SchemaDocument& document_;
  Rules& rules_;
  Budget& budget_;
  Collector collector_;
  std::map<Terms, Part> known_;
  std::map<Terms, Collected> collected_;
  std::vector<std::pair<Rule, Terms>> pending_;
  std::map<const JsonNode*, std::shared_ptr<const Dfa>> patterns_;
  std::map<std::pair<const JsonNode*, const JsonNode*>, bool> disjoint_;
  std::optional<Part> any_value_;
  int ways_made_ = 0;
};

}  // namespace inferno::grammar
