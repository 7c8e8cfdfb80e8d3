#include "grammar/schema/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/utf8.h"
#include "grammar/grammar.h"
#include "grammar/regex.h"
#include "grammar/schema/strings.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

constexpr int max_ways = 4000;  // in which alternatives may be combined
constexpr int max_depth = 64;   // of alternatives within alternatives
constexpr int max_look = 6;     // levels of a value that are compared to tell schemas apart

Term plain(const JsonNode& schema) {
  return {Term::Kind::schema, &schema, 0};
}

bool contradicts(const NumberBound& least, const NumberBound& most) {
  const int order = compare(least.value, most.value);
  return order > 0 || (order == 0 && !(least.inclusive && most.inclusive));
}

}  // namespace

Part SchemaCompiler::run() {
  const Part root = value_of({plain(document_.root())});
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto [rule, terms] = pending_[i];
    rules_.define(rule, build(terms));
  }
  return root;
}

// A reference to the rule of these terms, which is made later: schemas may contain themselves.
Part SchemaCompiler::value_of(const Terms& terms) {
  Terms key = terms;
  std::erase_if(key, [](const Term& term) {
    const JsonNode& node = *term.node;
    return term.kind == Term::Kind::schema && (node.is(Kind::object) ? node.keys.empty() : node.truth);
  });
  if (key.empty()) return any_value();
  const auto [at, is_new] = known_.try_emplace(key, Part{});
  if (is_new) {
    const Rule rule = rules_.declare(document_.pointer_of(*key[0].node));
    at->second = rules_.reference(rule);
    pending_.emplace_back(rule, key);
    budget_.spend(256);
  }
  return at->second;
}

Part SchemaCompiler::build(const Terms& terms) {
  Constraints constraints = collector_.collect(terms);
  std::vector<Part> ways;
  expand(std::move(constraints), ways, 0);
  return rules_.either(std::move(ways));
}

// One way of satisfying all alternatives after the other.
void SchemaCompiler::expand(Constraints constraints, std::vector<Part>& ways, int depth) {
  if (is_obviously_empty(constraints, 0)) return;
  if (constraints.alternatives.empty()) {
    ways.push_back(without_alternatives(constraints));
    return;
  }
  const Alternatives first = constraints.alternatives.front();
  constraints.alternatives.erase(constraints.alternatives.begin());
  if (depth > max_depth || ways_made_ > max_ways)
    document_.refuse_at(
        RefusalKind::limit, *first.origin,
        fmt::format("more than {} combinations of alternatives (limit {})", max_ways, max_ways));
  const bool alone = constraints.is_free() && constraints.alternatives.empty() && !first.exclusive;
  for (const Terms& way : first.exclusive ? exclusive_ways(constraints, first) : first.ways) {
    const Term& head = way.front();
    if (head.kind == Term::Kind::has_key_first && constraints.names.contains(head.node->keys[head.index]))
      continue;  // the place of a declared key is known: the way before says the same
    ++ways_made_;
    budget_.check_time();
    if (alone) {
      ways.push_back(value_of(way));
      continue;
    }
    Constraints narrowed = constraints;
    narrowed.names_at = std::min(first.names_at, narrowed.names.size());
    for (const Term& term : way) collector_.add(narrowed, term);
    expand(std::move(narrowed), ways, depth + 1);
  }
}

// Each way with the negations of those others that might hold at the same time.
std::vector<Terms> SchemaCompiler::exclusive_ways(const Constraints& base, const Alternatives& alternatives) {
  std::vector<Terms> result;
  const auto fits = [&](const Terms& terms) {
    Constraints constraints = base;
    constraints.alternatives.clear();
    for (const Term& term : terms) collector_.add(constraints, term);
    return !is_obviously_empty(constraints, 0);
  };
  for (std::size_t i = 0; i < alternatives.ways.size(); ++i) {
    Terms way = alternatives.ways[i];
    if (!fits(way)) continue;
    for (std::size_t j = 0; j < alternatives.ways.size(); ++j) {
      if (i == j || are_disjoint(*alternatives.ways[i][0].node, *alternatives.ways[j][0].node)) continue;
      if (!fits(joined(alternatives.ways[i], alternatives.ways[j]))) continue;
      way.push_back({Term::Kind::not_schema, alternatives.ways[j][0].node, 0});
    }
    try {
      Constraints trial;
      for (const Term& term : way) collector_.add(trial, term);
    } catch (const RefusedError& error) {
      if (error.refusal().kind != RefusalKind::unsupported || way.size() == 1) throw;
      document_.refuse_at(RefusalKind::unsupported, *alternatives.origin,
                          "the schemas of oneOf cannot be kept apart; use anyOf if more than one may hold");
    }
    result.push_back(std::move(way));
  }
  return result;
}

bool SchemaCompiler::are_disjoint(const JsonNode& a, const JsonNode& b) {
  const auto key = std::minmax({&a, &b});  // of values: a pair of references would dangle
  const auto [at, is_new] = disjoint_.try_emplace({key.first, key.second}, false);
  if (!is_new) return at->second;
  budget_.spend(64);
  const bool result = is_obviously_empty(collector_.collect({plain(a), plain(b)}), 0);
  disjoint_[{key.first, key.second}] = result;
  return result;
}

// True only if no value can satisfy the constraints; false also where that is hard to tell.
bool SchemaCompiler::is_obviously_empty(const Constraints& c, int depth) {
  budget_.spend(0);
  if (c.is_never || c.types == 0) return true;
  if (c.values) {
    Constraints rest = c;
    const auto values = take_values(rest);
    rest.alternatives.clear();
    if (std::ranges::none_of(values,
                             [&](const JsonNode* value) { return holds_beside_lists(rest, *value, 0); }))
      return true;
  }
  for (const Alternatives& alternatives : c.alternatives) {
    if (depth >= max_look) break;
    const bool none = std::ranges::all_of(alternatives.ways, [&](const Terms& way) {
      Constraints narrowed = c;
      narrowed.alternatives.clear();
      for (const Term& term : way) collector_.add(narrowed, term);
      return is_obviously_empty(narrowed, depth + 1);
    });
    if (none) return true;
  }
  Types possible = c.types;
  if (c.length.min > c.length.max) possible &= static_cast<Types>(~type::string);
  if (c.least && c.most && contradicts(*c.least, *c.most)) possible &= static_cast<Types>(~type::number);
  if (c.items.min > c.items.max) possible &= static_cast<Types>(~type::array);
  const auto impossible_key = [&](const std::string& name) {
    if (c.forbidden.contains(name)) return true;
    return depth < max_look && is_obviously_empty(collector_.collect(property_terms(c, name)), depth + 1);
  };
  if (c.properties.min > c.properties.max || c.required.size() > c.properties.max ||
      ((possible & type::object) != 0 && std::ranges::any_of(c.required, impossible_key)))
    possible &= static_cast<Types>(~type::object);
  return possible == 0;
}

Part SchemaCompiler::any_value() {
  if (any_value_) return *any_value_;
  const Rule rule = rules_.declare("any value");
  any_value_ = rules_.reference(rule);
  rules_.define(rule, without_alternatives({}));
  return *any_value_;
}

Part SchemaCompiler::without_alternatives(const Constraints& c) {
  if (c.values) return listed_values(c);
  std::vector<Part> ways;
  const auto excludes = [&c](Kind kind, bool truth) {
    return std::ranges::any_of(c.excluded,
                               [&](const JsonNode* v) { return v->is(kind) && v->truth == truth; });
  };
  if ((c.types & type::null) != 0 && !excludes(Kind::null, false)) ways.push_back(rules_.literal("null"));
  for (const bool truth : {true, false})
    if ((c.types & type::boolean) != 0 && !excludes(Kind::boolean, truth))
      ways.push_back(rules_.literal(truth ? "true" : "false"));
  if ((c.types & type::number) != 0) ways.push_back(number_part(c));
  if ((c.types & type::string) != 0) ways.push_back(string_part(c));
  if ((c.types & type::array) != 0) ways.push_back(array_part(c));
  if ((c.types & type::object) != 0) ways.push_back(object_part(c));
  return rules_.either(std::move(ways));
}

// The values of the list that are not excluded; what is left of the constraints speaks of neither.
std::vector<const JsonNode*> SchemaCompiler::take_values(Constraints& c) {
  std::vector<const JsonNode*> values = std::move(*c.values);
  c.values.reset();
  if (c.excluded.empty()) return values;
  std::unordered_set<std::string> excluded;
  for (const JsonNode* value : c.excluded) excluded.insert(canonical_text(*value, budget_));
  c.excluded.clear();
  std::erase_if(values,
                [&](const JsonNode* value) { return excluded.contains(canonical_text(*value, budget_)); });
  return values;
}

Part SchemaCompiler::listed_values(const Constraints& c) {
  Constraints rest = c;
  std::vector<std::string> texts;
  std::vector<Part> ways;
  for (const JsonNode* value : take_values(rest)) {
    if (!holds_beside_lists(rest, *value, 0)) continue;
    if (value->is(Kind::string))
      texts.push_back(json_quoted(value->text));
    else
      ways.push_back(listed_value(*value));
  }
  if (!texts.empty()) ways.push_back(rules_.one_of(std::move(texts), budget_));
  return rules_.either(std::move(ways));
}

// The depth is bounded by that of the document.
Part SchemaCompiler::listed_value(const JsonNode& value) {
  budget_.spend(64);
  switch (value.kind) {
    case Kind::null: return rules_.literal("null");
    case Kind::boolean: return rules_.literal(value.truth ? "true" : "false");
    case Kind::string: return rules_.literal(json_quoted(value.text));
    case Kind::number: {
      std::vector<std::string> texts = {value.text};
      if (const auto number = parse_decimal(value.text, 40)) texts.push_back(number->text());
      return rules_.one_of(std::move(texts), budget_);
    }
    case Kind::array: {
      ArrayParts parts;
      for (const JsonNode& item : value.items) parts.first.push_back(listed_value(item));
      parts.counts.min = parts.counts.max = static_cast<std::uint32_t>(parts.first.size());
      return rules_.array(std::move(parts));
    }
    case Kind::object: {
      ObjectParts parts;
      for (std::size_t i = 0; i < value.keys.size(); ++i)
        parts.properties.push_back({json_quoted(value.keys[i]), listed_value(value.items[i]), true});
      return rules_.object(std::move(parts));
    }
  }
  return rules_.never();
}

std::shared_ptr<const Dfa> SchemaCompiler::pattern(const JsonNode& node) {
  const auto known = patterns_.find(&node);
  if (known != patterns_.end()) return known->second;
  std::optional<Dfa> dfa;
  try {
    dfa = pattern_automaton(node.text, budget_);
  } catch (const RefusedError& error) {
    document_.refuse_at(error.refusal().kind, node, error.refusal().message);
  }
  return patterns_.emplace(&node, dfa ? std::make_shared<const Dfa>(std::move(*dfa)) : nullptr).first->second;
}

Part SchemaCompiler::string_part(const Constraints& c) {
  const Part quotation = rules_.literal("\"");
  Counts length = c.length;
  std::vector<std::shared_ptr<const Dfa>> all;
  for (const std::string& name : c.formats) {
    if (const auto dfa = format_automaton(name)) all.push_back(dfa);
    lower_max(length, format_counts(name).max);
  }
  for (const JsonNode* node : c.patterns) {
    all.push_back(pattern(*node));
    if (all.back() != nullptr) continue;
    // Too large for an automaton: it can still be followed as it is, if nothing must be intersected with it.
    const Part part = parse_regex(rules_, node->text, RegexDialect::pattern, TextForm::json_string, budget_);
    const bool alone =
        c.patterns.size() == 1 && c.formats.empty() && c.excluded_patterns.empty() && c.excluded.empty();
    if (!alone || length.max != Counts::unbounded || rules_.min_characters(part) < length.min)
      document_.refuse_at(RefusalKind::limit, *node,
                          "the pattern needs more than 16000 states (limit 16000)");
    return rules_.sequence({quotation, part, quotation});
  }
  std::vector<std::string> excluded;
  for (const JsonNode* value : c.excluded)
    if (value->is(Kind::string)) excluded.push_back(json_quoted(value->text).substr(1));
  if (all.empty() && excluded.empty() && c.excluded_patterns.empty())
    return rules_.sequence({quotation, counted_string(any_string(), length, c)});
  std::shared_ptr<const Dfa> result = all.empty() ? plain_string() : all[0];
  for (std::size_t i = 1; i < all.size(); ++i)
    result = std::make_shared<const Dfa>(intersection(*result, *all[i], budget_));
  for (const JsonNode* node : c.excluded_patterns) {
    const auto dfa = pattern(*node);
    if (dfa == nullptr)
      document_.refuse_at(RefusalKind::limit, *node,
                          "the pattern needs more than 16000 states (limit 16000)");
    result = std::make_shared<const Dfa>(difference(*result, *dfa, budget_));
  }
  if (!excluded.empty())
    result = std::make_shared<const Dfa>(difference(*result, literal_texts(excluded, budget_), budget_));
  return rules_.sequence({quotation, counted_string(result, length, c)});
}

Part SchemaCompiler::counted_string(std::shared_ptr<const Dfa> dfa, Counts length, const Constraints& c) {
  if (dfa->is_empty() || length.min > length.max) return rules_.never();
  if (length.is_free()) return rules_.lexeme(std::move(dfa));
  const SharedLengths shared = shared_lengths(dfa);
  const std::vector<Lengths>& lengths = *shared;
  // A text that cannot be too short needs no lower bound, and without one a gap between lengths does not
  // matter: whatever can end soon enough may go on.
  if (lengths[0].shortest >= length.min && lengths[0].shortest != Lengths::unbounded) length.min = 0;
  const bool is_known = lengths[0].shortest != Lengths::unbounded;
  if (is_known && (length.min == 0 || std::ranges::none_of(lengths, &Lengths::gap))) {
    if (lengths[0].shortest > length.max || lengths[0].longest < length.min) return rules_.never();
    return rules_.lexeme(std::move(dfa), length, shared);
  }
  auto counted = with_lengths(*dfa, length.min, length.max, 200'000, budget_);
  if (!counted)
    document_.refuse_at(RefusalKind::limit, *c.place, "pattern",
                        "this pattern cannot be combined with these lengths");
  return rules_.lexeme(std::make_shared<const Dfa>(std::move(*counted)));
}

Part SchemaCompiler::number_part(const Constraints& c) {
  const NumberLimits limits = {.least = c.least,
                               .most = c.most,
                               .without_exponent = !c.multiples_of.empty(),
                               .whole_only = (c.types & type::fraction) == 0,
                               .fractions_only = (c.types & type::integer) == 0};
  const auto placed = [&](const JsonNode* multiple, const auto& make) {
    try {
      return make();
    } catch (const RefusedError& error) {
      const Refusal& refusal = error.refusal();
      if (refusal.keyword.empty()) throw;
      const JsonNode* place = refusal.keyword == "minimum"   ? c.minimum_at
                              : refusal.keyword == "maximum" ? c.maximum_at
                                                             : multiple;
      document_.refuse_at(refusal.kind, *place, refusal.message);
    }
  };
  Dfa dfa = placed(nullptr, [&] { return number_automaton(limits, budget_); });
  for (const auto& [of, at] : c.multiples_of) {
    const Dfa multiples = placed(at, [&, &number = of] { return multiples_automaton(number, budget_); });
    dfa = intersection(dfa, multiples, budget_);
  }
  std::vector<std::string> excluded;
  for (const JsonNode* value : c.excluded) {
    if (!value->is(Kind::number)) continue;
    // Another spelling of the same number must not slip through.
    if (!limits.whole_only)
      document_.refuse_at(RefusalKind::unsupported, *value,
                          "the exclusion of a number is enforced for integers only");
    if (const auto number = parse_decimal(value->text); number && number->is_whole()) {
      excluded.push_back(number->text());
      if (number->is_zero()) excluded.emplace_back("-0");
    }
  }
  if (!excluded.empty()) dfa = difference(dfa, literal_texts(excluded, budget_), budget_);
  return rules_.lexeme(std::make_shared<const Dfa>(std::move(dfa)));
}

std::shared_ptr<const Grammar> compile_schema(std::string_view json, const CompileOptions& options) {
  Budget budget(options.limits, options.cancel);
  const SchemaDocument document(json, budget);
  Rules rules;
  if (options.compact_whitespace) rules.make_compact();
  const Part root = SchemaCompiler(document, rules, budget).run();
  auto grammar = std::make_shared<Grammar>(std::move(rules), root, budget);
  grammar->add_notes(document.notes());
  return grammar;
}

std::shared_ptr<const Grammar> compile_json_object(const CompileOptions& options) {
  return compile_schema(R"({"type":"object"})", options);
}

}  // namespace inferno::grammar
