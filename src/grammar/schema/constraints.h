// What several schemas together say about one value: the intersection of all of them, before any of it
// becomes text. Schemas are collected as terms; what says "one of these" stays a list of alternatives.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "grammar/rules.h"
#include "grammar/schema/document.h"
#include "grammar/schema/number.h"

namespace inferno::grammar {

// One thing a value must satisfy.
struct Term {
  enum class Kind : std::uint8_t {
    schema,         // `node` is a schema
    not_schema,     // and must not hold
    not_keyword,    // the keyword at `index` of the schema `node` must not hold
    has_keys,       // an object with all keys in the list `node`
    lacks_key,      // an object without the key at `index` of `node`, or no object
    is_object,      // no node
    has_key_first,  // an object with the key at `index` of `node`, declared before what follows
    has_value_not,  // an object with the key at `index` of `node`, whose value violates that schema
  };
  Kind kind = Kind::schema;
  const JsonNode* node = nullptr;
  std::uint32_t index = 0;
  auto operator<=>(const Term&) const = default;
};
// All of them; sorted, without repetitions.
using Terms = std::vector<Term>;

using Types = std::uint8_t;
namespace type {
inline constexpr Types null = 1, boolean = 2, integer = 4, fraction = 8, string = 16, array = 32, object = 64;
inline constexpr Types number = integer | fraction;
inline constexpr Types all = 127;
}  // namespace type

struct Alternatives {
  std::vector<Terms> ways;
  const JsonNode* origin = nullptr;  // for messages
  bool exclusive = false;            // exactly one of them, rather than at least one
  // Where the names that they declare stand among the others: last, except for anyOf and oneOf.
  std::size_t names_at = static_cast<std::size_t>(-1);
};

// Names in the order in which they were added, each once.
class NameList {
 public:
  void add(const std::string& name) { insert(names_.size(), name); }
  void insert(std::size_t at, const std::string& name);  // nothing if it is there
  void erase(const std::string& name);
  bool contains(const std::string& name) const;
  std::size_t index_of(const std::string& name) const;  // size() if it is not there

  std::size_t size() const { return names_.size(); }
  bool empty() const { return names_.empty(); }
  auto begin() const { return names_.begin(); }
  auto end() const { return names_.end(); }

 private:
  std::vector<std::string> names_;
  std::unordered_set<std::string> index_;  // empty while there are few
};

struct Constraints {
  Types types = type::all;
  bool is_never = false;
  std::optional<std::vector<const JsonNode*>> values;  // enum and const
  std::vector<const JsonNode*> excluded;               // values that must not come

  std::vector<const JsonNode*> patterns, excluded_patterns;
  NameList formats;
  Counts length;

  struct Multiple {
    Decimal of;
    const JsonNode* at = nullptr;  // for messages
  };
  std::optional<NumberBound> least, most;
  const JsonNode *minimum_at = nullptr, *maximum_at = nullptr;  // for messages
  std::vector<Multiple> multiples_of;

  struct ArrayRule {
    std::vector<const JsonNode*> first;
    const JsonNode* rest = nullptr;
  };
  std::vector<ArrayRule> arrays;
  Counts items;

  struct ObjectRule {
    const JsonNode* properties = nullptr;
    const JsonNode* patterns = nullptr;
    const JsonNode* additional = nullptr;
  };
  std::vector<ObjectRule> objects;
  NameList names;            // declared
  std::size_t names_at = 0;  // where the next one is inserted
  NameList required;
  NameList forbidden;  // keys that must not come
  std::vector<std::pair<std::string, const JsonNode*>> value_not;
  std::vector<const JsonNode*> name_schemas;
  Counts properties;

  std::vector<Alternatives> alternatives;
  const JsonNode* place = nullptr;  // the first schema that was added, for messages

  bool is_free() const;  // nothing but alternatives
  void declare(const std::string& name);
};

// Adds terms to constraints. Refuses what cannot be intersected or negated.
class Collector {
 public:
  Collector(const SchemaDocument& document, Budget& budget) : document_(document), budget_(budget) {}
  void add(Constraints& to, const Term& term);
  Constraints collect(const Terms& terms);

 private:
  void add_schema(Constraints& to, const JsonNode& schema, int depth);
  void add_keyword(Constraints& to, const JsonNode& schema, std::size_t index, int depth);
  bool add_string_keyword(Constraints& to, std::string_view key, const JsonNode& value);
  bool add_number_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                          const JsonNode& value);
  bool add_array_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                         const JsonNode& value);
  bool add_object_keyword(Constraints& to, const JsonNode& schema, std::string_view key,
                          const JsonNode& value);
  bool add_combination(Constraints& to, const JsonNode& schema, std::size_t index);
  void add_one_of(Constraints& to, const JsonNode& value);
  void add_dependencies(Constraints& to, const JsonNode& value);
  void add_negation(Constraints& to, const JsonNode& schema);
  void add_negated_keyword(Constraints& to, const JsonNode& schema, std::size_t index);
  bool add_negated_bound(Constraints& to, const JsonNode& schema, std::size_t index);
  void add_values(Constraints& to, std::vector<const JsonNode*> values) const;
  void add_least(Constraints& to, const JsonNode& value, bool inclusive) const;
  void add_most(Constraints& to, const JsonNode& value, bool inclusive) const;
  std::uint32_t count_of(const JsonNode& value) const;
  Decimal decimal_of(const JsonNode& value) const;

  const SchemaDocument& document_;
  Budget& budget_;
};

Types type_of(const JsonNode& value);
// The same text for values that are equal in the sense of JSON Schema, and for no others. RefusedError{limit}
// for a number whose exponent has more than 15 digits.
std::string canonical_text(const JsonNode& value, Budget& budget);
Terms joined(const Terms& a, const Terms& b);
void raise_min(Counts& counts, std::uint32_t min);
void lower_max(Counts& counts, std::uint32_t max);

}  // namespace inferno::grammar
