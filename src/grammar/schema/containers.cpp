// Arrays and objects of a schema, and the keys that it does not declare.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/strings.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t max_groups = 256;  // of undeclared keys, by the patterns that they match

Term plain(const JsonNode& schema) {
  return {Term::Kind::schema, &schema, 0};
}

void add(Terms& terms, const Term& term) {
  if (std::ranges::find(terms, term) == terms.end()) terms.push_back(term);
}

std::string key_text(const std::string& name) {
  return json_quoted(name).substr(1);
}

}  // namespace

Part SchemaCompiler::array_part(const Constraints& c) {
  for (const JsonNode* value : c.excluded)
    if (value->is(Kind::array))
      document_.refuse_at(RefusalKind::unsupported, *value,
                          "the exclusion of an array is not enforced by Inferno");
  std::size_t fixed = 0;
  for (const auto& rule : c.arrays) fixed = std::max(fixed, rule.first.size());
  ArrayParts parts;
  parts.counts = c.items;
  const auto item = [&](std::size_t index) {
    Terms terms;
    for (const auto& rule : c.arrays) {
      if (index < rule.first.size())
        add(terms, plain(*rule.first[index]));
      else if (rule.rest != nullptr)
        add(terms, plain(*rule.rest));
    }
    return value_of(terms);
  };
  fixed = std::min<std::size_t>(fixed, c.items.max);
  for (std::size_t i = 0; i < fixed; ++i) parts.first.push_back(item(i));
  parts.rest = item(fixed);
  return rules_.array(std::move(parts));
}

// All that is said about the value of a key.
Terms SchemaCompiler::property_terms(const Constraints& c, const std::string& name) {
  Terms terms;
  for (const auto& rule : c.objects) {
    budget_.spend(0);
    const JsonNode* declared = rule.properties != nullptr ? rule.properties->find(name) : nullptr;
    bool covered = declared != nullptr;
    if (declared != nullptr) add(terms, plain(*declared));
    if (rule.patterns != nullptr) {
      for (std::size_t i = 0; i < rule.patterns->keys.size(); ++i) {
        const auto dfa = name_pattern(*rule.patterns, i);
        if (!dfa->accepts(key_text(name))) continue;
        covered = true;
        add(terms, plain(rule.patterns->items[i]));
      }
    }
    if (!covered && rule.additional != nullptr) add(terms, plain(*rule.additional));
  }
  for (const auto& [key, schema] : c.value_not)
    if (key == name) add(terms, {Term::Kind::not_schema, schema, 0});
  return terms;
}

std::shared_ptr<const Dfa> SchemaCompiler::name_pattern(const JsonNode& patterns, std::size_t index) {
  const auto known = patterns_.find(&patterns.items[index]);
  if (known != patterns_.end()) return known->second;
  std::optional<Dfa> dfa;
  try {
    dfa = pattern_automaton(patterns.keys[index], budget_);
  } catch (const RefusedError& error) {
    document_.refuse_at(error.refusal().kind, patterns.items[index], error.refusal().message);
  }
  if (!dfa)
    document_.refuse_at(RefusalKind::limit, patterns.items[index],
                        "the pattern needs more than 16000 states (limit 16000)");
  return patterns_.emplace(&patterns.items[index], std::make_shared<const Dfa>(std::move(*dfa)))
      .first->second;
}

// Strings that a schema of names allows, if that is regular.
std::shared_ptr<const Dfa> SchemaCompiler::name_automaton(const JsonNode& schema) {
  Constraints c = collector_.collect({plain(schema)});
  const bool is_simple = c.alternatives.empty() && c.excluded.empty();
  if (!is_simple)
    document_.refuse_at(RefusalKind::unsupported, schema,
                        "propertyNames is enforced for patterns, lengths, formats and lists only");
  if (c.is_never || (c.types & type::string) == 0) return std::make_shared<const Dfa>();
  if (c.values) {
    std::vector<std::string> texts;
    Constraints rest = c;
    for (const JsonNode* value : take_values(rest))
      if (value->is(Kind::string) && holds_beside_lists(rest, *value, 0))
        texts.push_back(key_text(value->text));
    return std::make_shared<const Dfa>(literal_texts(texts, budget_));
  }
  Dfa result = *plain_string();
  Counts length = c.length;
  for (const std::string& name : c.formats) {
    if (const auto dfa = format_automaton(name)) result = intersection(result, *dfa, budget_);
    lower_max(length, format_counts(name).max);
  }
  for (const JsonNode* node : c.patterns) {
    const auto dfa = pattern(*node);
    if (dfa == nullptr)
      document_.refuse_at(RefusalKind::limit, *node,
                          "the pattern needs more than 16000 states (limit 16000)");
    result = intersection(result, *dfa, budget_);
  }
  if (!length.is_free()) {
    auto counted =
        length.min > length.max ? Dfa() : with_lengths(result, length.min, length.max, 50'000, budget_);
    if (!counted)
      document_.refuse_at(RefusalKind::limit, schema,
                          "the lengths of names are too large (limit 50000 states)");
    result = std::move(*counted);
  }
  return std::make_shared<const Dfa>(std::move(result));
}

bool SchemaCompiler::name_fits(const Constraints& c, const std::string& name) {
  if (c.forbidden.contains(name)) return false;
  return std::ranges::all_of(c.name_schemas, [&](const JsonNode* schema) {
    JsonNode value;
    value.kind = Kind::string;
    value.text = name;
    return holds(Terms{plain(*schema)}, value, 0);
  });
}

// Splits the groups by what one schema says about keys that are not declared anywhere.
void SchemaCompiler::split_by_rule(std::vector<Undeclared>& groups, const Constraints::ObjectRule& rule) {
  std::vector<bool> covered(groups.size(), false);
  const std::size_t count = rule.patterns != nullptr ? rule.patterns->keys.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto dfa = name_pattern(*rule.patterns, i);
    const std::size_t before = groups.size();
    for (std::size_t g = 0; g < before; ++g) {
      auto inside = std::make_shared<const Dfa>(intersection(*groups[g].key, *dfa, budget_));
      if (inside->is_empty()) continue;
      Undeclared matching = {inside, groups[g].value};
      add(matching.value, plain(rule.patterns->items[i]));
      groups.push_back(std::move(matching));
      covered.push_back(true);
      groups[g].key = std::make_shared<const Dfa>(difference(*groups[g].key, *dfa, budget_));
    }
    if (groups.size() > max_groups)
      document_.refuse_at(
          RefusalKind::limit, *rule.patterns,
          fmt::format("patterns divide the keys into {} groups (limit {})", groups.size(), max_groups));
  }
  if (rule.additional != nullptr)
    for (std::size_t g = 0; g < groups.size(); ++g)
      if (!covered[g]) add(groups[g].value, plain(*rule.additional));
}

std::vector<SchemaCompiler::Undeclared> SchemaCompiler::undeclared_keys(const Constraints& c,
                                                                        const NameList& declared) {
  std::vector<Undeclared> groups(1);
  const auto is_closed = [](const Constraints::ObjectRule& rule) {
    return rule.additional != nullptr && rule.additional->is(Kind::boolean) && !rule.additional->truth &&
           (rule.patterns == nullptr || rule.patterns->keys.empty());
  };
  if (std::ranges::any_of(c.objects, is_closed)) return {};
  std::vector<std::string> texts;
  for (const std::string& name : declared) texts.push_back(key_text(name));
  for (const std::string& name : c.forbidden) texts.push_back(key_text(name));
  groups[0].key =
      texts.empty()
          ? plain_string()
          : std::make_shared<const Dfa>(difference(*plain_string(), literal_texts(texts, budget_), budget_));
  for (const JsonNode* schema : c.name_schemas)
    groups[0].key =
        std::make_shared<const Dfa>(intersection(*groups[0].key, *name_automaton(*schema), budget_));
  for (const auto& rule : c.objects) split_by_rule(groups, rule);
  std::erase_if(groups, [&](const Undeclared& group) {
    return group.key->is_empty() || is_obviously_empty(collector_.collect(group.value), 1);
  });
  return groups;
}

Part SchemaCompiler::object_part(const Constraints& c) {
  for (const JsonNode* value : c.excluded)
    if (value->is(Kind::object))
      document_.refuse_at(RefusalKind::unsupported, *value,
                          "the exclusion of an object is not enforced by Inferno");
  // Declared keys, then undeclared ones that are required.
  NameList names = c.names;
  for (const std::string& name : c.required) names.add(name);
  ObjectParts parts;
  parts.counts = c.properties;
  for (const std::string& name : names) {
    const bool fits = name_fits(c, name);
    const bool is_required = c.required.contains(name);
    if (!fits && is_required) return rules_.never();
    if (fits) parts.properties.push_back({json_quoted(name), value_of(property_terms(c, name)), is_required});
  }
  for (const Undeclared& group : undeclared_keys(c, names)) {
    const Part value = value_of(group.value);
    parts.undeclared.push_back({group.key, value});
  }
  return rules_.object(std::move(parts));
}

}  // namespace inferno::grammar
