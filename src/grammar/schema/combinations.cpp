// Keywords that combine schemas, and negation: what becomes a list of alternatives.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "grammar/schema/constraints.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

Term plain(const JsonNode& schema) {
  return {Term::Kind::schema, &schema, 0};
}
Term negated(const JsonNode& schema) {
  return {Term::Kind::not_schema, &schema, 0};
}

}  // namespace

bool Collector::add_combination(Constraints& to, const JsonNode& schema, std::size_t index) {
  const std::string_view key = schema.keys[index];
  const JsonNode& value = schema.items[index];
  if (key == "anyOf") {
    Alternatives alternatives{{}, &value};
    for (const JsonNode& item : value.items) alternatives.ways.push_back({plain(item)});
    alternatives.names_at = to.names_at;
    to.alternatives.push_back(std::move(alternatives));
  } else if (key == "oneOf") {
    add_one_of(to, value);
  } else if (key == "not") {
    add_negation(to, value);
  } else if (key == "if") {
    Alternatives alternatives{{{plain(value)}, {negated(value)}}, &value};
    if (const JsonNode* then = schema.find("then")) alternatives.ways[0].push_back(plain(*then));
    if (const JsonNode* otherwise = schema.find("else")) alternatives.ways[1].push_back(plain(*otherwise));
    if (schema.find("then") != nullptr || schema.find("else") != nullptr)
      to.alternatives.push_back(std::move(alternatives));
  } else if (key == "dependentSchemas" || key == "dependentRequired" || key == "dependencies") {
    add_dependencies(to, value);
  } else {
    return false;
  }
  return true;
}

// Each way with the negation of all others; which of those are needed is found when the ways are compared.
void Collector::add_one_of(Constraints& to, const JsonNode& value) {
  Alternatives alternatives{{}, &value};
  for (const JsonNode& item : value.items) alternatives.ways.push_back({plain(item)});
  alternatives.exclusive = true;
  alternatives.names_at = to.names_at;
  to.alternatives.push_back(std::move(alternatives));
}

void Collector::add_dependencies(Constraints& to, const JsonNode& value) {
  for (std::uint32_t i = 0; i < value.keys.size(); ++i) {
    const JsonNode& then = value.items[i];
    const Term consequence = then.is(Kind::array) ? Term{Term::Kind::has_keys, &then, 0} : plain(then);
    Alternatives alternatives{{{{Term::Kind::lacks_key, &value, i}}, {consequence}}, &value};
    // Undeclared keys may come in either order; the third way is left out where the key is declared.
    if (then.is(Kind::array))
      alternatives.ways.push_back({{Term::Kind::has_key_first, &value, i}, consequence});
    to.alternatives.push_back(std::move(alternatives));
  }
}

// Not all of the keywords hold: one of them does not.
void Collector::add_negation(Constraints& to, const JsonNode& schema) {
  if (schema.is(Kind::boolean)) {
    to.is_never = to.is_never || schema.truth;
    return;
  }
  Alternatives alternatives{{}, &schema};
  const bool hidden = document_.hides_siblings() && schema.find("$ref") != nullptr;
  for (std::uint32_t i = 0; i < schema.keys.size(); ++i) {
    if (schema.keys[i] == "$ref")
      alternatives.ways.push_back({negated(document_.target(schema))});
    else if (!hidden && document_.knows(schema.keys[i]) && is_validating(schema.keys[i]) &&
             !changes_nothing(schema, i))
      alternatives.ways.push_back({{Term::Kind::not_keyword, &schema, i}});
  }
  if (alternatives.ways.empty()) {
    to.is_never = true;
  } else if (alternatives.ways.size() == 1) {
    add(to, alternatives.ways[0][0]);
  } else {
    to.alternatives.push_back(std::move(alternatives));
  }
}

void Collector::add_negated_keyword(Constraints& to, const JsonNode& schema, std::size_t index) {
  const std::string_view key = schema.keys[index];
  const JsonNode& value = schema.items[index];
  Alternatives alternatives{{}, &value};
  if (key == "type") {
    Constraints other;
    add_keyword(other, schema, index, 0);
    to.types &= static_cast<Types>(~other.types);
  } else if (key == "enum") {
    for (const JsonNode& item : value.items) to.excluded.push_back(&item);
  } else if (key == "const") {
    to.excluded.push_back(&value);
  } else if (key == "required") {
    to.types &= type::object;
    for (std::uint32_t i = 0; i < value.items.size(); ++i)
      alternatives.ways.push_back({{Term::Kind::lacks_key, &value, i}});
  } else if (key == "properties") {
    for (std::uint32_t i = 0; i < value.items.size(); ++i)
      alternatives.ways.push_back({{Term::Kind::has_value_not, &value, i}});
  } else if (key == "allOf") {
    for (const JsonNode& item : value.items) alternatives.ways.push_back({negated(item)});
  } else if (key == "anyOf") {
    for (const JsonNode& item : value.items) add_negation(to, item);
    return;
  } else if (key == "not") {
    return add(to, plain(value));
  } else if (key == "pattern") {
    to.types &= type::string;
    to.excluded_patterns.push_back(&value);
  } else if (!add_negated_bound(to, schema, index)) {
    document_.refuse_at(RefusalKind::unsupported, value,
                        fmt::format("the negation of {} is not enforced by Inferno", quote(key)));
  }
  if (key != "required" && key != "properties" && key != "allOf") return;
  if (alternatives.ways.empty())
    to.is_never = true;
  else
    to.alternatives.push_back(std::move(alternatives));
}

bool Collector::add_negated_bound(Constraints& to, const JsonNode& schema, std::size_t index) {
  const std::string_view key = schema.keys[index];
  const JsonNode& value = schema.items[index];
  const auto below = [&](Counts& counts, Types types) {
    to.types &= types;
    const std::uint32_t count = count_of(value);
    if (count == 0)
      to.is_never = true;
    else if (count != Counts::unbounded)
      lower_max(counts, count - 1);
  };
  const auto above = [&](Counts& counts, Types types) {
    to.types &= types;
    const std::uint32_t count = count_of(value);
    if (count == Counts::unbounded)
      to.is_never = true;
    else
      raise_min(counts, count + 1);
  };
  // In draft 4 a flag, which belongs to the bound beside it.
  const auto is_exclusive = [&schema](std::string_view flag) {
    const JsonNode* found = schema.find(flag);
    return found != nullptr && found->is(Kind::boolean) && found->truth;
  };
  if (key == "minLength") {
    below(to.length, type::string);
  } else if (key == "maxLength") {
    above(to.length, type::string);
  } else if (key == "minItems") {
    below(to.items, type::array);
  } else if (key == "maxItems") {
    above(to.items, type::array);
  } else if (key == "minProperties") {
    below(to.properties, type::object);
  } else if (key == "maxProperties") {
    above(to.properties, type::object);
  } else if (key == "minimum") {
    to.types &= type::number;
    add_most(to, value, is_exclusive("exclusiveMinimum"));
  } else if (key == "maximum") {
    to.types &= type::number;
    add_least(to, value, is_exclusive("exclusiveMaximum"));
  } else if (key == "exclusiveMinimum" || key == "exclusiveMaximum") {
    to.types &= type::number;
    if (value.is(Kind::boolean))
      to.is_never = true;
    else if (key == "exclusiveMinimum")
      add_most(to, value, true);
    else
      add_least(to, value, true);
  } else {
    return false;
  }
  return true;
}

}  // namespace inferno::grammar
