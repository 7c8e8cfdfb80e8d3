// A JSON schema as a document: which draft it is written in, what its references mean, where a value stands.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/budget.h"
#include "grammar/json.h"

namespace inferno::grammar {

enum class Draft { four, six, seven, later };

class SchemaDocument {
 public:
  // Refuses text that is no schema, every keyword that would not be enforced, references that lead nowhere
  // or into another document, and those that lead back without a value between.
  SchemaDocument(std::string_view text, Budget& budget);

  const JsonNode& root() const { return root_; }
  Draft draft() const { return draft_; }
  const JsonNode& target(const JsonNode& schema) const { return *targets_.at(&schema); }
  // Names the place of a value, and the keyword it belongs to.
  [[noreturn]] void refuse_at(RefusalKind kind, const JsonNode& node, std::string message) const;
  [[noreturn]] void refuse_at(RefusalKind kind, const JsonNode& schema, std::string_view keyword,
                              std::string message) const;
  std::string pointer_of(const JsonNode& node) const;
  const std::vector<std::string>& notes() const { return notes_; }

  // Whether the keyword exists in the schema's draft; others are unknown words and change nothing.
  bool knows(std::string_view keyword) const;
  // Of drafts up to 7, a reference hides the keywords beside it.
  bool hides_siblings() const { return draft_ != Draft::later; }

 private:
  void index_parents();
  void index_resources(const JsonNode& start, const std::string& base);
  std::string address_at(const JsonNode& node, const std::string& base, std::string_view reference) const;
  void check_reachable();
  void refuse_unclear_siblings(const JsonNode& schema) const;
  void check_keywords(const JsonNode& schema);
  void check_types(const JsonNode& schema) const;
  void check_shape(const JsonNode& schema, std::size_t key) const;
  const JsonNode& resolve(const JsonNode& schema, const JsonNode& reference);
  const JsonNode* follow_pointer(const JsonNode& from, std::string_view pointer) const;
  void refuse_endless_references();

  JsonNode root_;
  Draft draft_ = Draft::later;
  Budget& budget_;
  struct Parent {
    const JsonNode* node = nullptr;
    std::uint32_t index = 0;
  };
  std::unordered_map<const JsonNode*, Parent> parents_;
  std::unordered_map<const JsonNode*, std::string> bases_;         // of schemas
  std::map<std::string, const JsonNode*, std::less<>> resources_;  // by address, also with an anchor
  std::unordered_map<const JsonNode*, const JsonNode*> targets_;
  std::vector<const JsonNode*> reachable_;
  std::vector<std::string> notes_;
};

// Whether a word restricts values; all others are annotations or unknown.
bool is_validating(std::string_view key);
// Whether the keyword at `index`, which is not enforced, holds for every value where it stands.
bool changes_nothing(const JsonNode& schema, std::size_t index);

// The schemas directly inside a schema that speak about the same value (allOf, anyOf, $ref, …), and those
// that speak about parts of it.
enum class Inside { same_value, parts, definitions };
struct Subschema {
  const JsonNode* node = nullptr;
  Inside inside = Inside::parts;
};
std::vector<Subschema> subschemas(const JsonNode& schema);

}  // namespace inferno::grammar
