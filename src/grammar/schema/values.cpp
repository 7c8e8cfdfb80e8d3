// Whether a value that stands in a schema satisfies the rest of it.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/strings.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

constexpr int max_depth = 256;

bool within(const Counts& counts, std::size_t count) {
  return counts.min <= count && (counts.max == Counts::unbounded || count <= counts.max);
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !utf8::is_continuation(byte); }));
}

}  // namespace

const SchemaCompiler::Collected& SchemaCompiler::collected(const Terms& terms) {
  const auto known = collected_.find(terms);
  if (known != collected_.end()) return known->second;
  Collected result = {.constraints = collector_.collect(terms), .values = {}, .excluded = {}};
  budget_.spend(sizeof(Collected));
  const auto remember = [&](std::unordered_set<std::string>& texts, const JsonNode* value) {
    std::string text = canonical_text(*value, budget_);
    budget_.spend(64 + text.size());
    texts.insert(std::move(text));
  };
  if (result.constraints.values)
    for (const JsonNode* value : *result.constraints.values) remember(result.values, value);
  for (const JsonNode* value : result.constraints.excluded) remember(result.excluded, value);
  return collected_.emplace(terms, std::move(result)).first->second;
}

bool SchemaCompiler::holds(const Terms& terms, const JsonNode& value, int depth) {
  const auto& [constraints, values, excluded] = collected(terms);
  if ((constraints.types & type_of(value)) == 0) return false;
  if (constraints.values || !excluded.empty()) {
    const std::string text = canonical_text(value, budget_);
    if (constraints.values && !values.contains(text)) return false;
    if (excluded.contains(text)) return false;
  }
  return holds_beside_lists(constraints, value, depth);
}

bool SchemaCompiler::holds_beside_lists(const Constraints& c, const JsonNode& value, int depth) {
  budget_.spend(0);
  if (depth > max_depth) refuse(RefusalKind::limit, "a value is nested too deeply");
  if (c.is_never || (c.types & type_of(value)) == 0) return false;
  for (const Alternatives& alternatives : c.alternatives) {
    const auto count = std::ranges::count_if(alternatives.ways,
                                             [&](const Terms& way) { return holds(way, value, depth + 1); });
    if (alternatives.exclusive ? count != 1 : count == 0) return false;
  }
  switch (value.kind) {
    case Kind::null:
    case Kind::boolean: return true;
    case Kind::number: return holds_for_number(c, value);
    case Kind::string: return holds_for_string(c, value);
    case Kind::array: return holds_for_array(c, value, depth);
    case Kind::object: return holds_for_object(c, value, depth);
  }
  return false;
}

bool SchemaCompiler::holds_for_string(const Constraints& c, const JsonNode& value) {
  const std::string text = json_quoted(value.text).substr(1);
  if (!within(c.length, characters_of(value.text))) return false;
  for (const std::string& name : c.formats) {
    const auto dfa = format_automaton(name);
    if (dfa != nullptr && !dfa->accepts(text)) return false;
  }
  const auto matches = [&](const JsonNode* node) {
    const auto dfa = pattern(*node);
    if (dfa == nullptr)
      document_.refuse_at(RefusalKind::limit, *node,
                          "the pattern needs more than 16000 states (limit 16000)");
    return dfa->accepts(text);
  };
  return std::ranges::all_of(c.patterns, matches) && std::ranges::none_of(c.excluded_patterns, matches);
}

bool SchemaCompiler::holds_for_number(const Constraints& c, const JsonNode& value) {
  const auto number = parse_decimal(value.text);
  if (!number) document_.refuse_at(RefusalKind::limit, value, "the number has too many digits (limit 1000)");
  if (c.least) {
    const int order = compare(*number, c.least->value);
    if (order < 0 || (order == 0 && !c.least->inclusive)) return false;
  }
  if (c.most) {
    const int order = compare(*number, c.most->value);
    if (order > 0 || (order == 0 && !c.most->inclusive)) return false;
  }
  return std::ranges::all_of(c.multiples_of, [&](const Constraints::Multiple& each) {
    const auto multiple = is_multiple(*number, each.of);
    if (!multiple)
      document_.refuse_at(RefusalKind::limit, value,
                          fmt::format("the number has {} digits, too many to check multipleOf (limit 15)",
                                      number->whole.size() + number->fraction.size()));
    return *multiple;
  });
}

bool SchemaCompiler::holds_for_array(const Constraints& c, const JsonNode& value, int depth) {
  if (!within(c.items, value.items.size())) return false;
  for (const auto& rule : c.arrays) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const JsonNode* schema = i < rule.first.size() ? rule.first[i] : rule.rest;
      if (schema == nullptr) continue;
      if (!holds(Terms{{Term::Kind::schema, schema, 0}}, value.items[i], depth + 1)) return false;
    }
  }
  return true;
}

bool SchemaCompiler::holds_for_object(const Constraints& c, const JsonNode& value, int depth) {
  if (!within(c.properties, value.keys.size())) return false;
  for (const std::string& name : c.required)
    if (value.find(name) == nullptr) return false;
  for (std::size_t i = 0; i < value.keys.size(); ++i)
    if (!name_fits(c, value.keys[i]) || !holds(property_terms(c, value.keys[i]), value.items[i], depth + 1))
      return false;
  return true;
}

}  // namespace inferno::grammar
