#include "grammar/schema/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "grammar/schema/number.h"

namespace inferno::grammar {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t max_schema_bytes = std::size_t{1} << 20;
constexpr std::size_t max_address_bytes = 4096;

enum class Shape { schema, schemas, map, schema_or_list, map_or_lists };

struct Applicator {
  std::string_view keyword;
  Shape shape;
  Inside inside;
};

constexpr std::array applicators = {
    Applicator{"allOf", Shape::schemas, Inside::same_value},
    Applicator{"anyOf", Shape::schemas, Inside::same_value},
    Applicator{"oneOf", Shape::schemas, Inside::same_value},
    Applicator{"not", Shape::schema, Inside::same_value},
    Applicator{"if", Shape::schema, Inside::same_value},
    Applicator{"then", Shape::schema, Inside::same_value},
    Applicator{"else", Shape::schema, Inside::same_value},
    Applicator{"dependentSchemas", Shape::map, Inside::same_value},
    Applicator{"dependencies", Shape::map_or_lists, Inside::same_value},
    Applicator{"properties", Shape::map, Inside::parts},
    Applicator{"patternProperties", Shape::map, Inside::parts},
    Applicator{"additionalProperties", Shape::schema, Inside::parts},
    Applicator{"propertyNames", Shape::schema, Inside::parts},
    Applicator{"items", Shape::schema_or_list, Inside::parts},
    Applicator{"prefixItems", Shape::schemas, Inside::parts},
    Applicator{"additionalItems", Shape::schema, Inside::parts},
    Applicator{"contains", Shape::schema, Inside::parts},
    Applicator{"$defs", Shape::map, Inside::definitions},
    Applicator{"definitions", Shape::map, Inside::definitions},
};

// Validating keywords that are not enforced.
constexpr std::array<std::string_view, 10> refused = {
    "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", "minContains",
    "maxContains",           "contains",         "extends",     "disallow",      "divisibleBy"};

constexpr std::array<std::string_view, 10> enforced_formats = {
    "date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"};
constexpr std::array<std::string_view, 11> standard_formats = {
    "idn-email",    "idn-hostname",          "iri",   "iri-reference",    "uri-reference", "uri-template",
    "json-pointer", "relative-json-pointer", "regex", "ecmascript-regex", "color"};

bool contains(auto& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::string escaped_for_pointer(std::string_view key) {
  std::string out;
  for (const char letter : key) {
    if (letter == '~')
      out += "~0";
    else if (letter == '/')
      out += "~1";
    else
      out += letter;
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  const auto digit = [](char letter) {
    return std::string_view("0123456789abcdef").find(lower_case({&letter, 1}));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) < 16 && digit(text[i + 2]) < 16) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The length of the scheme of an address, with its colon; 0 if there is none.
std::size_t scheme_size(std::string_view address) {
  const auto end = address.find_first_of(":/?");
  return end == std::string_view::npos || end == 0 || address[end] != ':' ? 0 : end + 1;
}

// Where the path of an address begins.
std::size_t path_begin(std::string_view address) {
  const std::size_t scheme = scheme_size(address);
  if (!address.substr(scheme).starts_with("//")) return scheme;
  return std::min(address.find_first_of("/?", scheme + 2), address.size());
}

// Follows the segments "." and ".." of the path.
std::string without_dots(const std::string& address) {
  const std::size_t begin = path_begin(address);
  const std::size_t query = std::min(address.find('?'), address.size());
  std::string_view rest = std::string_view(address).substr(begin, query - begin);
  const bool is_empty = rest.empty();
  const bool is_rooted = rest.starts_with('/');
  std::string path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    const std::string_view segment = rest.substr(0, end);
    const std::string_view name = segment.substr(segment.starts_with('/') ? 1 : 0);
    rest.remove_prefix(end);
    if (name == "..") path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/'));
    if (name != "." && name != "..")
      path += segment;
    else if (rest.empty())
      path += '/';
  }
  if (!is_rooted && path.starts_with('/')) path.erase(0, 1);
  if (!is_empty && path.empty()) path = "./";  // a folder, and not the document that the empty address names
  return address.substr(0, begin) + path + address.substr(query);
}

// `reference` without a fragment, seen from `base`.
std::string resolved(const std::string& base, std::string_view reference) {
  if (reference.empty()) return base;
  if (scheme_size(reference) > 0) return without_dots(std::string(reference));
  const auto from = [&](std::string folder) { return without_dots(folder += reference); };
  const std::size_t begin = path_begin(base);
  const std::string path = base.substr(begin, base.find('?', begin) - begin);
  if (reference.starts_with("//")) return from(base.substr(0, scheme_size(base)));
  if (reference.starts_with("/")) return from(base.substr(0, begin));
  if (reference.starts_with("?")) return from(base.substr(0, begin) + path);
  const bool has_authority = begin > scheme_size(base);
  if (path.empty() && has_authority) return from(base.substr(0, begin) + "/");
  return from(base.substr(0, begin + path.rfind('/') + 1));  // without a slash, rfind() + 1 is 0
}

Draft draft_of(const JsonNode& root) {
  const JsonNode* named = root.find("$schema");
  if (named == nullptr || !named->is(Kind::string)) return Draft::later;
  if (named->text.find("draft-04") != std::string::npos) return Draft::four;
  if (named->text.find("draft-06") != std::string::npos) return Draft::six;
  if (named->text.find("draft-07") != std::string::npos) return Draft::seven;
  return Draft::later;
}

}  // namespace

bool is_validating(std::string_view key) {
  constexpr std::array<std::string_view, 42> known = {"$ref",
                                                      "type",
                                                      "enum",
                                                      "const",
                                                      "allOf",
                                                      "anyOf",
                                                      "oneOf",
                                                      "not",
                                                      "if",
                                                      "then",
                                                      "else",
                                                      "dependentSchemas",
                                                      "dependentRequired",
                                                      "dependencies",
                                                      "properties",
                                                      "patternProperties",
                                                      "additionalProperties",
                                                      "propertyNames",
                                                      "required",
                                                      "minProperties",
                                                      "maxProperties",
                                                      "items",
                                                      "prefixItems",
                                                      "additionalItems",
                                                      "contains",
                                                      "minContains",
                                                      "maxContains",
                                                      "uniqueItems",
                                                      "minItems",
                                                      "maxItems",
                                                      "minLength",
                                                      "maxLength",
                                                      "pattern",
                                                      "format",
                                                      "minimum",
                                                      "maximum",
                                                      "exclusiveMinimum",
                                                      "exclusiveMaximum",
                                                      "multipleOf",
                                                      "unevaluatedProperties",
                                                      "unevaluatedItems",
                                                      "extends"};
  return std::ranges::find(known, key) != known.end();
}

bool changes_nothing(const JsonNode& schema, std::size_t index) {
  const std::string_view key = schema.keys[index];
  const JsonNode& value = schema.items[index];
  if (key == "unevaluatedProperties" || key == "unevaluatedItems")
    return value.is(Kind::boolean) && value.truth;
  if (key == "minContains" || key == "maxContains") return schema.find("contains") == nullptr;
  if (key != "uniqueItems" || !value.is(Kind::boolean)) return false;
  const JsonNode* max_items = schema.find("maxItems");
  if (!value.truth || max_items == nullptr || !max_items->is(Kind::number)) return !value.truth;
  const auto max = parse_decimal(max_items->text);
  return max && max->is_whole() && (max->whole == "0" || max->whole == "1");
}

std::vector<Subschema> subschemas(const JsonNode& schema) {
  std::vector<Subschema> found;
  const auto add = [&found](const JsonNode& node, Inside inside) {
    if (node.is(Kind::object) || node.is(Kind::boolean)) found.push_back({&node, inside});
  };
  for (std::size_t i = 0; i < schema.keys.size(); ++i) {
    const auto known = std::ranges::find(applicators, schema.keys[i], &Applicator::keyword);
    if (known == applicators.end()) continue;
    const JsonNode& value = schema.items[i];
    const bool as_schema =
        known->shape == Shape::schema || (known->shape == Shape::schema_or_list && !value.is(Kind::array));
    if (as_schema)
      add(value, known->inside);
    else
      for (const JsonNode& item : value.items) add(item, known->inside);
  }
  return found;
}

SchemaDocument::SchemaDocument(std::string_view text, Budget& budget) : budget_(budget) {
  if (text.size() > max_schema_bytes)
    refuse(RefusalKind::limit, fmt::format("schema of {} bytes (limit {})", text.size(), max_schema_bytes));
  root_ = parse_json_text(text);
  if (!root_.is(Kind::object) && !root_.is(Kind::boolean))
    refuse(RefusalKind::invalid, "a schema must be an object, true or false");
  draft_ = draft_of(root_);
  index_parents();
  index_resources(root_, "");
  check_reachable();
  refuse_endless_references();
}

void SchemaDocument::index_parents() {
  std::vector<const JsonNode*> work = {&root_};
  while (!work.empty()) {
    const JsonNode* node = work.back();
    work.pop_back();
    budget_.spend(64);
    for (std::uint32_t i = 0; i < node->items.size(); ++i) {
      parents_[&node->items[i]] = {node, i};
      work.push_back(&node->items[i]);
    }
  }
}

void SchemaDocument::index_resources(const JsonNode& start, const std::string& base) {
  std::vector<std::pair<const JsonNode*, std::string>> work = {{&start, base}};
  while (!work.empty()) {
    auto [schema, here] = std::move(work.back());
    work.pop_back();
    if (bases_.contains(schema)) continue;
    budget_.spend(64 + here.size());
    const JsonNode* id = schema->find(draft_ == Draft::four ? "id" : "$id");
    const bool hidden = hides_siblings() && schema->find("$ref") != nullptr;
    if (id != nullptr && id->is(Kind::string) && !hidden) {
      const auto hash = std::min(id->text.find('#'), id->text.size());
      if (hash > 0) {
        here = address_at(*id, here, std::string_view(id->text).substr(0, hash));
        resources_.try_emplace(here, schema);
      }
      if (hash + 1 < id->text.size()) resources_.try_emplace(here + id->text.substr(hash), schema);
    }
    // To $ref, which alone is followed, both are the same.
    for (const char* keyword : {"$anchor", "$dynamicAnchor"})
      if (const JsonNode* anchor = schema->find(keyword);
          knows(keyword) && anchor != nullptr && anchor->is(Kind::string))
        resources_.try_emplace(here + "#" + anchor->text, schema);
    if (schema == &root_) resources_.try_emplace(here, schema);
    for (const Subschema& each : subschemas(*schema)) work.emplace_back(each.node, here);
    bases_.emplace(schema, std::move(here));
  }
}

// Every schema below an address remembers it.
std::string SchemaDocument::address_at(const JsonNode& node, const std::string& base,
                                       std::string_view reference) const {
  std::string address = resolved(base, reference);
  if (address.size() > max_address_bytes)
    refuse_at(RefusalKind::limit, node,
              fmt::format("an address of {} bytes (limit {})", address.size(), max_address_bytes));
  return address;
}

const JsonNode* SchemaDocument::follow_pointer(const JsonNode& from, std::string_view pointer) const {
  const JsonNode* node = &from;
  while (!pointer.empty() && node != nullptr) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string key;
    for (std::size_t i = 0; i < end; ++i) {
      const bool escape = pointer[i] == '~' && i + 1 < end;
      key += escape ? (pointer[i + 1] == '1' ? '/' : '~') : pointer[i];
      i += escape ? 1 : 0;
    }
    pointer.remove_prefix(end);
    if (node->is(Kind::array)) {
      const bool is_index = !key.empty() && key.size() < 8 &&
                            std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      const std::size_t index = is_index ? std::stoul(key) : node->items.size();
      node = index < node->items.size() ? &node->items[index] : nullptr;
    } else {
      node = node->find(key);
    }
  }
  return node;
}

const JsonNode& SchemaDocument::resolve(const JsonNode& schema, const JsonNode& reference) {
  if (!reference.is(Kind::string)) refuse_at(RefusalKind::invalid, reference, "$ref must be a string");
  const std::string& text = reference.text;
  const auto hash = std::min(text.find('#'), text.size());
  const std::string address =
      address_at(reference, bases_.at(&schema), std::string_view(text).substr(0, hash));
  const std::string fragment =
      hash < text.size() ? percent_decoded(std::string_view(text).substr(hash + 1)) : "";
  const bool is_pointer = fragment.empty() || fragment.starts_with("/");
  const auto found = resources_.find(is_pointer ? address : address + "#" + fragment);
  const JsonNode* node = found == resources_.end() ? nullptr : found->second;
  if (node != nullptr && is_pointer) node = follow_pointer(*node, fragment);
  if (node == nullptr) {
    const bool is_here = resources_.contains(address);
    refuse_at(is_here ? RefusalKind::invalid : RefusalKind::unsupported, reference,
              is_here
                  ? fmt::format("{} leads nowhere", quote(text))
                  : fmt::format("{} is another document; only references into the schema itself are followed",
                                quote(text)));
  }
  if (!node->is(Kind::object) && !node->is(Kind::boolean))
    refuse_at(RefusalKind::invalid, reference, fmt::format("{} leads to no schema", quote(text)));
  index_resources(*node, address);
  return *node;
}

void SchemaDocument::check_reachable() {
  std::unordered_map<const JsonNode*, bool> seen;
  std::vector<const JsonNode*> work = {&root_};
  while (!work.empty()) {
    const JsonNode* schema = work.back();
    work.pop_back();
    if (seen.contains(schema)) continue;
    seen.emplace(schema, true);
    reachable_.push_back(schema);
    budget_.spend(64);
    const JsonNode* reference = schema->find("$ref");
    if (reference != nullptr) {
      const JsonNode& to = resolve(*schema, *reference);
      targets_.emplace(schema, &to);
      work.push_back(&to);
      if (hides_siblings()) continue;
      refuse_unclear_siblings(*schema);
    }
    check_keywords(*schema);
    for (const Subschema& each : subschemas(*schema))
      if (each.inside != Inside::definitions) work.push_back(each.node);
  }
}

// A schema that names no draft but has `definitions` may be meant for a draft in which $ref hides the
// keywords beside it: what it accepts would then differ.
void SchemaDocument::refuse_unclear_siblings(const JsonNode& schema) const {
  if (root_.find("$schema") != nullptr || root_.find("definitions") == nullptr) return;
  for (std::size_t i = 0; i < schema.keys.size(); ++i)
    if (schema.keys[i] != "$ref" && is_validating(schema.keys[i]))
      refuse_at(RefusalKind::unsupported, schema.items[i],
                "up to draft 7, $ref hides the keywords beside it; name the draft with $schema");
}

void SchemaDocument::check_keywords(const JsonNode& schema) {
  for (std::size_t i = 0; i < schema.keys.size(); ++i) {
    const std::string& key = schema.keys[i];
    const JsonNode& value = schema.items[i];
    if (!knows(key)) continue;
    if (changes_nothing(schema, i)) continue;
    if (contains(refused, key))
      refuse_at(RefusalKind::unsupported, value, fmt::format("{} is not enforced by Inferno", quote(key)));
    if (key == "dependencies" && draft_ == Draft::later)
      refuse_at(RefusalKind::unsupported, value,
                "dependencies belongs to drafts up to 7; use dependentRequired");
    if (key == "uniqueItems" && value.is(Kind::boolean))
      refuse_at(RefusalKind::unsupported, value, "uniqueItems is not enforced by Inferno");
    if (key == "format" && value.is(Kind::string) && !contains(enforced_formats, value.text)) {
      if (contains(standard_formats, value.text))
        refuse_at(RefusalKind::unsupported, value,
                  fmt::format("format {} is not enforced by Inferno", quote(value.text)));
      notes_.push_back(
          fmt::format("{}: format {} is unknown and changes nothing", pointer_of(value), quote(value.text)));
    }
    check_shape(schema, i);
  }
  check_types(schema);
}

void SchemaDocument::check_shape(const JsonNode& schema, std::size_t key) const {
  const JsonNode& value = schema.items[key];
  const std::string& name = schema.keys[key];
  const auto is_schema = [](const JsonNode& node) { return node.is(Kind::object) || node.is(Kind::boolean); };
  const auto wrong = [&](const JsonNode& at, std::string_view what) {
    refuse_at(RefusalKind::invalid, at, fmt::format("{} must be {}", name, what));
  };
  if (const auto known = std::ranges::find(applicators, name, &Applicator::keyword);
      known != applicators.end()) {
    switch (known->shape) {
      case Shape::schema:
        if (!is_schema(value)) wrong(value, "a schema");
        break;
      case Shape::schemas:
        if (!value.is(Kind::array) || value.items.empty()) wrong(value, "a list of schemas");
        break;
      case Shape::schema_or_list:
        if (!is_schema(value) && !value.is(Kind::array)) wrong(value, "a schema or a list of schemas");
        break;
      case Shape::map:
      case Shape::map_or_lists:
        if (!value.is(Kind::object)) wrong(value, "an object of schemas");
        break;
    }
    const bool lists = known->shape == Shape::map_or_lists;
    if (known->shape != Shape::schema && !is_schema(value))
      for (const JsonNode& item : value.items)
        if (!is_schema(item)) wrong(item, "made of schemas");
    if (value.is(Kind::object) && (known->shape == Shape::map || lists))
      for (const JsonNode& item : value.items)
        if (!is_schema(item) && !(lists && item.is(Kind::array))) wrong(item, "made of schemas");
    return;
  }
  constexpr std::array<std::string_view, 7> counts = {
      "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "multipleOf"};
  constexpr std::array<std::string_view, 2> numbers = {"minimum", "maximum"};
  constexpr std::array<std::string_view, 2> exclusive = {"exclusiveMinimum", "exclusiveMaximum"};
  constexpr std::array<std::string_view, 2> texts = {"pattern", "format"};
  if (contains(counts, name) && (!value.is(Kind::number) || value.text.starts_with("-")))
    wrong(value, "a number that is not negative");
  if (contains(numbers, name) && !value.is(Kind::number)) wrong(value, "a number");
  if (contains(exclusive, name) && !value.is(Kind::number) && !(value.is(Kind::boolean)))
    wrong(value, "a number");
  if (contains(texts, name) && !value.is(Kind::string)) wrong(value, "a string");
  if (name == "enum" && !value.is(Kind::array)) wrong(value, "a list");
  if (name == "uniqueItems" && !value.is(Kind::boolean)) wrong(value, "true or false");
  if (name == "required" || name == "dependentRequired") {
    const bool map = name == "dependentRequired";
    if (!value.is(map ? Kind::object : Kind::array))
      wrong(value, map ? "an object of lists" : "a list of names");
    for (const JsonNode& item : value.items)
      if (!item.is(map ? Kind::array : Kind::string)) wrong(item, map ? "made of lists" : "made of names");
  }
}

void SchemaDocument::check_types(const JsonNode& schema) const {
  const JsonNode* type = schema.find("type");
  if (type == nullptr) return;
  constexpr std::array<std::string_view, 7> types = {"null",   "boolean", "integer", "number",
                                                     "string", "array",   "object"};
  const auto check_one = [&](const JsonNode& node) {
    if (!node.is(Kind::string) || !contains(types, node.text))
      refuse_at(RefusalKind::invalid, *type,
                fmt::format("{} is not a type", node.is(Kind::string) ? quote(node.text) : "this"));
  };
  if (!type->is(Kind::array)) return check_one(*type);
  for (const JsonNode& each : type->items) check_one(each);
}

// A reference, or several, that lead back to where they began while still speaking of the same value say
// nothing, or would have to be followed for ever.
void SchemaDocument::refuse_endless_references() {
  enum class Mark { open, done };
  std::unordered_map<const JsonNode*, Mark> marks;
  struct Visit {
    const JsonNode* schema;
    std::vector<const JsonNode*> next;
  };
  std::vector<Visit> path;
  const auto open = [&](const JsonNode* schema) {
    marks[schema] = Mark::open;
    Visit visit = {schema, {}};
    const auto target = targets_.find(schema);
    if (target != targets_.end()) visit.next.push_back(target->second);
    if (target == targets_.end() || !hides_siblings())
      for (const Subschema& each : subschemas(*schema))
        if (each.inside == Inside::same_value) visit.next.push_back(each.node);
    path.push_back(std::move(visit));
    budget_.spend(64);
  };
  for (const JsonNode* start : reachable_) {
    if (marks.contains(start)) continue;
    open(start);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next.empty()) {
        marks[visit.schema] = Mark::done;
        path.pop_back();
        continue;
      }
      const JsonNode* next = visit.next.back();
      visit.next.pop_back();
      const auto mark = marks.find(next);
      if (mark == marks.end()) {
        open(next);
      } else if (mark->second == Mark::open) {
        for (auto at = path.rbegin(); at != path.rend(); ++at)
          if (targets_.contains(at->schema))
            refuse_at(RefusalKind::invalid, *at->schema, "$ref", "the reference leads back to itself");
        refuse_at(RefusalKind::invalid, *next, "$ref", "the schema refers to itself");
      }
    }
  }
}

bool SchemaDocument::knows(std::string_view keyword) const {
  constexpr std::array<std::string_view, 4> since_six = {"const", "contains", "propertyNames", "examples"};
  constexpr std::array<std::string_view, 3> since_seven = {"if", "then", "else"};
  constexpr std::array<std::string_view, 9> since_later = {
      "prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
      "minContains", "maxContains",       "$dynamicRef",      "$dynamicAnchor"};
  if (draft_ < Draft::six && contains(since_six, keyword)) return false;
  if (draft_ < Draft::seven && contains(since_seven, keyword)) return false;
  return draft_ == Draft::later || !contains(since_later, keyword);
}

std::string SchemaDocument::pointer_of(const JsonNode& node) const {
  std::vector<std::string> parts;
  for (const JsonNode* at = &node; at != &root_;) {
    const auto parent = parents_.find(at);
    if (parent == parents_.end()) return "";
    const auto& [up, index] = parent->second;
    parts.push_back(up->is(Kind::object) ? escaped_for_pointer(up->keys[index]) : std::to_string(index));
    at = up;
  }
  std::string out;
  for (; !parts.empty(); parts.pop_back()) out += "/" + parts.back();
  return out;
}

void SchemaDocument::refuse_at(RefusalKind kind, const JsonNode& node, std::string message) const {
  // The keyword is the nearest name on the way up that belongs to a schema rather than to a list or a map;
  // for the places that are refused, that is the key of the value itself.
  const auto parent = parents_.find(&node);
  std::string keyword;
  if (parent != parents_.end()) {
    const auto& [up, index] = parent->second;
    keyword = up->is(Kind::object) ? up->keys[index] : std::to_string(index);
  }
  throw RefusedError(
      {.kind = kind, .pointer = pointer_of(node), .keyword = keyword, .message = std::move(message)});
}

void SchemaDocument::refuse_at(RefusalKind kind, const JsonNode& schema, std::string_view keyword,
                               std::string message) const {
  throw RefusedError({.kind = kind,
                      .pointer = pointer_of(schema),
                      .keyword = std::string(keyword),
                      .message = std::move(message)});
}

}  // namespace inferno::grammar
