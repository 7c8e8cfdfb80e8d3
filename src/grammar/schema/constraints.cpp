#include "grammar/schema/constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

constexpr int max_depth = 1000;  // of schemas that speak of the same value
constexpr std::size_t many_names = 32;
constexpr std::size_t max_exponent_digits = 15;

Types type_named(std::string_view name) {
  if (name == "null") return type::null;
  if (name == "boolean") return type::boolean;
  if (name == "integer") return type::integer;
  if (name == "number") return type::number;
  if (name == "string") return type::string;
  if (name == "array") return type::array;
  return type::object;
}

Types types_named(const JsonNode& value) {
  if (value.is(Kind::string)) return type_named(value.text);
  Types types = 0;
  for (const JsonNode& each : value.items) types |= type_named(each.text);
  return types;
}

// Digits without zeros at either end, times a power of ten: short also for large exponents. No digits are
// zero.
struct Scientific {
  bool negative = false;
  std::string digits;
  long exponent = 0;
};

Scientific scientific(std::string_view text) {
  Scientific number;
  number.negative = text.starts_with('-');
  if (number.negative) text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, end);
  const std::size_t point = std::min(mantissa.find('.'), end);
  number.digits = mantissa.substr(0, point);
  if (point < end) number.digits += mantissa.substr(point + 1);
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  if (number.digits.empty()) return {};
  std::string_view power = text.substr(std::min(end + 1, text.size()));
  const bool is_small = power.starts_with('-');
  if (is_small || power.starts_with('+')) power.remove_prefix(1);
  power.remove_prefix(std::min(power.find_first_not_of('0'), power.size()));
  if (power.size() > max_exponent_digits)
    refuse(RefusalKind::limit, fmt::format("a number has an exponent of {} digits (limit {})", power.size(),
                                           max_exponent_digits));
  for (const char digit : power) number.exponent = number.exponent * 10 + (digit - '0');
  if (is_small) number.exponent = -number.exponent;
  if (point < end) number.exponent -= static_cast<long>(end - point - 1);
  const std::size_t used = number.digits.find_last_not_of('0') + 1;
  number.exponent += static_cast<long>(number.digits.size() - used);
  number.digits.resize(used);
  return number;
}

std::string canonical_number(const std::string& text) {
  const Scientific number = scientific(text);
  if (number.digits.empty()) return "0";
  return fmt::format("{}{}e{}", number.negative ? "-" : "", number.digits, number.exponent);
}

}  // namespace

Types type_of(const JsonNode& value) {
  switch (value.kind) {
    case Kind::null: return type::null;
    case Kind::boolean: return type::boolean;
    case Kind::number: return scientific(value.text).exponent >= 0 ? type::integer : type::fraction;
    case Kind::string: return type::string;
    case Kind::array: return type::array;
    case Kind::object: return type::object;
  }
  return 0;
}

// The depth is bounded by that of the document.
std::string canonical_text(const JsonNode& value, Budget& budget) {
  budget.spend(0);
  switch (value.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return value.truth ? "true" : "false";
    case Kind::string: return json_quoted(value.text);
    case Kind::number: return canonical_number(value.text);
    case Kind::array: {
      std::string text = "[";
      for (const JsonNode& item : value.items) (text += canonical_text(item, budget)) += ',';
      return text += ']';
    }
    case Kind::object: {
      std::string text = "{";
      for (const std::uint32_t i : value.sorted)
        ((text += json_quoted(value.keys[i])) += ':') += canonical_text(value.items[i], budget) + ",";
      return text += '}';
    }
  }
  return {};
}

Terms joined(const Terms& a, const Terms& b) {
  Terms result = a;
  for (const Term& term : b)
    if (std::ranges::find(result, term) == result.end()) result.push_back(term);
  return result;
}

void raise_min(Counts& counts, std::uint32_t min) {
  counts.min = std::max(counts.min, min);
}
void lower_max(Counts& counts, std::uint32_t max) {
  counts.max = std::min(counts.max, max);
}

void NameList::insert(std::size_t at, const std::string& name) {
  if (contains(name)) return;
  names_.insert(names_.begin() + static_cast<std::ptrdiff_t>(at), name);
  if (names_.size() > many_names && index_.empty())
    index_.insert(names_.begin(), names_.end());
  else if (!index_.empty())
    index_.insert(name);
}

void NameList::erase(const std::string& name) {
  std::erase(names_, name);
  index_.erase(name);
}

bool NameList::contains(const std::string& name) const {
  return index_.empty() ? std::ranges::find(names_, name) != names_.end() : index_.contains(name);
}

std::size_t NameList::index_of(const std::string& name) const {
  if (!contains(name)) return size();
  return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
}

// The first place counts.
void Constraints::declare(const std::string& name) {
  if (names_at == names.size()) {  // the usual case; the other one looks through all of them
    names.add(name);
    names_at = names.size();
    return;
  }
  const std::size_t at = names.index_of(name);
  if (at < names_at) return;
  for (Alternatives& each : alternatives)
    if (names_at <= each.names_at && each.names_at <= at) ++each.names_at;
  if (at < names.size()) names.erase(name);
  names.insert(names_at, name);
  ++names_at;
}

bool Constraints::is_free() const {
  return types == type::all && !is_never && !values && excluded.empty() && patterns.empty() &&
         excluded_patterns.empty() && formats.empty() && length.is_free() && !least && !most &&
         multiples_of.empty() && arrays.empty() && items.is_free() && objects.empty() && required.empty() &&
         forbidden.empty() && value_not.empty() && name_schemas.empty() && properties.is_free();
}

Constraints Collector::collect(const Terms& terms) {
  Constraints result;
  for (const Term& term : terms) add(result, term);
  return result;
}

void Collector::add(Constraints& to, const Term& term) {
  if (to.place == nullptr) to.place = term.node;
  switch (term.kind) {
    case Term::Kind::schema: return add_schema(to, *term.node, 0);
    case Term::Kind::not_schema: return add_negation(to, *term.node);
    case Term::Kind::not_keyword: return add_negated_keyword(to, *term.node, term.index);
    case Term::Kind::has_keys:
      for (const JsonNode& key : term.node->items) to.required.add(key.text);
      return;
    case Term::Kind::lacks_key:
      return to.forbidden.add(term.node->is(Kind::array) ? term.node->items[term.index].text
                                                         : term.node->keys[term.index]);
    case Term::Kind::is_object: to.types &= type::object; return;
    case Term::Kind::has_key_first:
      to.declare(term.node->keys[term.index]);
      return to.required.add(term.node->keys[term.index]);
    case Term::Kind::has_value_not:
      to.types &= type::object;
      to.required.add(term.node->keys[term.index]);
      to.value_not.emplace_back(term.node->keys[term.index], &term.node->items[term.index]);
      return;
  }
}

void Collector::add_schema(Constraints& to, const JsonNode& schema, int depth) {
  budget_.spend(16);
  if (depth > max_depth)
    document_.refuse_at(RefusalKind::limit, schema, "$ref",
                        fmt::format("more than {} schemas refer to each other (limit {})", depth, max_depth));
  if (to.place == nullptr) to.place = &schema;
  if (schema.is(Kind::boolean)) {
    to.is_never = to.is_never || !schema.truth;
    return;
  }
  const bool refers = schema.find("$ref") != nullptr;
  Constraints::ObjectRule rule = {schema.find("properties"), schema.find("patternProperties"),
                                  schema.find("additionalProperties")};
  const bool hidden = refers && document_.hides_siblings();
  if (!hidden && (rule.properties != nullptr || rule.patterns != nullptr || rule.additional != nullptr))
    to.objects.push_back(rule);
  for (std::size_t i = 0; i < schema.keys.size(); ++i) {
    if (schema.keys[i] == "$ref")
      add_schema(to, document_.target(schema), depth + 1);
    else if (!hidden && document_.knows(schema.keys[i]))
      add_keyword(to, schema, i, depth);
  }
}

void Collector::add_keyword(Constraints& to, const JsonNode& schema, std::size_t index, int depth) {
  const std::string_view key = schema.keys[index];
  const JsonNode& value = schema.items[index];
  if (key == "type") {
    to.types &= types_named(value);
  } else if (key == "enum") {
    std::vector<const JsonNode*> values;
    for (const JsonNode& item : value.items) values.push_back(&item);
    add_values(to, std::move(values));
  } else if (key == "const") {
    add_values(to, {&value});
  } else if (key == "allOf") {
    for (const JsonNode& item : value.items) add_schema(to, item, depth + 1);
  } else {
    const bool known = add_string_keyword(to, key, value) || add_number_keyword(to, schema, key, value) ||
                       add_array_keyword(to, schema, key, value) ||
                       add_object_keyword(to, schema, key, value) || add_combination(to, schema, index);
    (void)known;  // anything else is an annotation: the document was checked
  }
}

void Collector::add_values(Constraints& to, std::vector<const JsonNode*> values) const {
  if (to.values) {
    std::unordered_set<std::string> allowed;
    for (const JsonNode* other : *to.values) allowed.insert(canonical_text(*other, budget_));
    std::erase_if(values,
                  [&](const JsonNode* value) { return !allowed.contains(canonical_text(*value, budget_)); });
  }
  to.values = std::move(values);
}

std::uint32_t Collector::count_of(const JsonNode& value) const {
  const auto number = parse_decimal(value.text);
  if (!number || !number->is_whole())
    document_.refuse_at(number ? RefusalKind::invalid : RefusalKind::limit, value, "must be a whole number");
  if (number->whole.size() > 9) return Counts::unbounded;
  return static_cast<std::uint32_t>(std::stoul(number->whole));
}

bool Collector::add_string_keyword(Constraints& to, std::string_view key, const JsonNode& value) {
  if (key == "pattern") {
    to.patterns.push_back(&value);
  } else if (key == "format") {
    to.formats.add(value.text);
  } else if (key == "minLength") {
    raise_min(to.length, count_of(value));
  } else if (key == "maxLength") {
    lower_max(to.length, count_of(value));
  } else {
    return false;
  }
  return true;
}

Decimal Collector::decimal_of(const JsonNode& value) const {
  const auto number = parse_decimal(value.text);
  if (!number) document_.refuse_at(RefusalKind::limit, value, "the number has too many digits (limit 1000)");
  return *number;
}

void Collector::add_least(Constraints& to, const JsonNode& value, bool inclusive) const {
  const Decimal number = decimal_of(value);
  const int order = to.least ? compare(number, to.least->value) : 1;
  if (order > 0) {
    to.least = {number, inclusive};
    to.minimum_at = &value;
  } else if (order == 0) {
    to.least->inclusive = to.least->inclusive && inclusive;
  }
}

void Collector::add_most(Constraints& to, const JsonNode& value, bool inclusive) const {
  const Decimal number = decimal_of(value);
  const int order = to.most ? compare(number, to.most->value) : -1;
  if (order < 0) {
    to.most = {number, inclusive};
    to.maximum_at = &value;
  } else if (order == 0) {
    to.most->inclusive = to.most->inclusive && inclusive;
  }
}

bool Collector::add_number_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                                   const JsonNode& value) {
  // In draft 4 the exclusive keywords are flags of their neighbours.
  const auto flag = [&schema](std::string_view name) {
    const JsonNode* found = schema.find(name);
    return found != nullptr && found->is(Kind::boolean) && found->truth;
  };
  if (key == "minimum") {
    add_least(to, value, !flag("exclusiveMinimum"));
  } else if (key == "maximum") {
    add_most(to, value, !flag("exclusiveMaximum"));
  } else if (key == "exclusiveMinimum" && value.is(Kind::number)) {
    add_least(to, value, false);
  } else if (key == "exclusiveMaximum" && value.is(Kind::number)) {
    add_most(to, value, false);
  } else if (key == "multipleOf") {
    Decimal number = decimal_of(value);
    if (number.is_zero())
      document_.refuse_at(RefusalKind::invalid, value, "multipleOf must be larger than 0");
    to.multiples_of.push_back({std::move(number), &value});
  } else {
    return false;
  }
  return true;
}

bool Collector::add_array_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                                  const JsonNode& value) {
  if (key == "minItems") {
    raise_min(to.items, count_of(value));
  } else if (key == "maxItems") {
    lower_max(to.items, count_of(value));
  } else if (key == "items" || key == "prefixItems") {
    const JsonNode* first = document_.knows("prefixItems") ? schema.find("prefixItems") : nullptr;
    const JsonNode* rest = schema.find("items");
    if (key == "items" && first != nullptr && !value.is(Kind::array)) return true;  // with prefixItems
    if (value.is(Kind::array) && key == "items") {
      first = rest;
      rest = schema.find("additionalItems");
    }
    Constraints::ArrayRule rule;
    rule.rest = rest;
    if (first != nullptr)
      for (const JsonNode& item : first->items) rule.first.push_back(&item);
    to.arrays.push_back(std::move(rule));
  } else {
    return false;
  }
  return true;
}

bool Collector::add_object_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                                   const JsonNode& value) {
  (void)schema;
  if (key == "properties") {
    for (const std::string& name : value.keys) {
      budget_.spend(0);
      to.declare(name);
    }
  } else if (key == "required") {
    for (const JsonNode& name : value.items) to.required.add(name.text);
  } else if (key == "minProperties") {
    raise_min(to.properties, count_of(value));
  } else if (key == "maxProperties") {
    lower_max(to.properties, count_of(value));
  } else if (key == "propertyNames") {
    to.name_schemas.push_back(&value);
  } else {
    return false;
  }
  return true;
}

}  // namespace inferno::grammar
