// A plain validator for the keywords that need no more than a few lines, to check what a constraint let pass.
// A schema with any other keyword is never called valid, and invalid only where a keyword below says so.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "grammar/json.h"

namespace inferno::fuzz {

using grammar::JsonNode;
enum class Verdict { invalid, unknown, valid };

inline Verdict validate(const JsonNode& schema, const JsonNode& value);

inline Verdict verdict(bool holds) {
  return holds ? Verdict::valid : Verdict::invalid;
}

// Whole numbers as such have no fraction here: that is how constraints write them.
inline bool has_type(std::string_view type, const JsonNode& value) {
  using Kind = JsonNode::Kind;
  if (type == "integer")
    return value.is(Kind::number) && value.text.find_first_of(".eE") == std::string::npos;
  if (type == "number") return value.is(Kind::number);
  if (type == "string") return value.is(Kind::string);
  if (type == "boolean") return value.is(Kind::boolean);
  if (type == "null") return value.is(Kind::null);
  if (type == "array") return value.is(Kind::array);
  return type == "object" && value.is(Kind::object);
}

// Numbers compare as doubles; where that could be wrong, nothing is said.
inline Verdict compare_numbers(const JsonNode& a, const JsonNode& b, bool (*holds)(double, double)) {
  if (a.text.size() > 15 || b.text.size() > 15) return Verdict::unknown;
  if ((a.text + b.text).find_first_of(".eE") != std::string::npos && a.text.size() + b.text.size() > 12)
    return Verdict::unknown;
  return verdict(holds(std::strtod(a.text.c_str(), nullptr), std::strtod(b.text.c_str(), nullptr)));
}

inline Verdict equal(const JsonNode& a, const JsonNode& b) {
  if (a.kind != b.kind) return Verdict::invalid;
  if (a.is(JsonNode::Kind::number)) return compare_numbers(a, b, [](double x, double y) { return x == y; });
  if (a.is(JsonNode::Kind::boolean)) return verdict(a.truth == b.truth);
  if (a.is(JsonNode::Kind::string)) return verdict(a.text == b.text);
  if (a.items.size() != b.items.size()) return Verdict::invalid;
  Verdict all = Verdict::valid;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const JsonNode* other = a.is(JsonNode::Kind::object) ? b.find(a.keys[i]) : &b.items[i];
    all = std::min(all, other ? equal(a.items[i], *other) : Verdict::invalid);
  }
  return all;
}

inline double characters(std::string_view text) {
  return static_cast<double>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// One keyword whose meaning depends on nothing beside it.
inline Verdict check(std::string_view keyword, const JsonNode& wanted, const JsonNode& value) {
  using Kind = JsonNode::Kind;
  const auto number = std::strtod(wanted.text.c_str(), nullptr);
  const auto size = static_cast<double>(value.items.size());
  if (keyword == "type") {
    if (wanted.is(Kind::string)) return verdict(has_type(wanted.text, value));
    return verdict(std::ranges::any_of(wanted.items, [&](const auto& t) { return has_type(t.text, value); }));
  }
  if (keyword == "const") return equal(wanted, value);
  if (keyword == "enum" || keyword == "anyOf") {
    Verdict best = Verdict::invalid;
    for (const JsonNode& one : wanted.items)
      best = std::max(best, keyword == "enum" ? equal(one, value) : validate(one, value));
    return best;
  }
  if (keyword == "allOf") {
    Verdict worst = Verdict::valid;
    for (const JsonNode& one : wanted.items) worst = std::min(worst, validate(one, value));
    return worst;
  }
  if (keyword == "required") {
    if (!value.is(Kind::object)) return Verdict::valid;
    return verdict(std::ranges::all_of(wanted.items, [&](const auto& k) { return value.find(k.text); }));
  }
  if (keyword == "minItems") return verdict(!value.is(Kind::array) || size >= number);
  if (keyword == "maxItems") return verdict(!value.is(Kind::array) || size <= number);
  if (keyword == "minProperties") return verdict(!value.is(Kind::object) || size >= number);
  if (keyword == "maxProperties") return verdict(!value.is(Kind::object) || size <= number);
  if (keyword == "minLength") return verdict(!value.is(Kind::string) || characters(value.text) >= number);
  if (keyword == "maxLength") return verdict(!value.is(Kind::string) || characters(value.text) <= number);
  if (keyword == "minimum" && value.is(Kind::number))
    return compare_numbers(value, wanted, [](double x, double y) { return x >= y; });
  if (keyword == "maximum" && value.is(Kind::number))
    return compare_numbers(value, wanted, [](double x, double y) { return x <= y; });
  return keyword == "title" || keyword == "description" ? Verdict::valid : Verdict::unknown;
}

inline Verdict check_properties(const JsonNode& schema, const JsonNode& value) {
  if (!value.is(JsonNode::Kind::object)) return Verdict::valid;
  const JsonNode* declared = schema.find("properties");
  const JsonNode* others = schema.find("additionalProperties");
  const bool has_patterns = schema.find("patternProperties") != nullptr;
  Verdict worst = has_patterns ? Verdict::unknown : Verdict::valid;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const JsonNode* property = declared ? declared->find(value.keys[i]) : nullptr;
    if (!property && has_patterns) continue;
    const JsonNode* wanted = property ? property : others;
    if (wanted) worst = std::min(worst, validate(*wanted, value.items[i]));
  }
  return worst;
}

inline Verdict validate(const JsonNode& schema, const JsonNode& value) {
  if (schema.is(JsonNode::Kind::boolean)) return verdict(schema.truth);
  // Up to draft 7 a reference hides its neighbours, and drafts differ in the form of other keywords.
  if (!schema.is(JsonNode::Kind::object) || schema.find("$ref") || schema.find("$schema"))
    return Verdict::unknown;
  Verdict worst = check_properties(schema, value);
  for (std::size_t i = 0; i < schema.items.size(); ++i) {
    const std::string_view keyword = schema.keys[i];
    if (keyword == "properties" || keyword == "additionalProperties" || keyword == "patternProperties")
      continue;
    worst = std::min(worst, check(keyword, schema.items[i], value));
  }
  return worst;
}

}  // namespace inferno::fuzz
