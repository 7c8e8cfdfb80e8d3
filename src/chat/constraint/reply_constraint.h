// What a request says about the form of its reply: a response format, the functions that may be called, and
// whether one must be. A plain description; compile.h turns it into a grammar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/refusal.h"

namespace inferno {

// A field of a request that asks for a constraint is malformed, or its constraint cannot be enforced.
class ConstraintError : public grammar::RefusedError {
 public:
  // The refusal's pointer is relative to `place`, a JSON pointer into the request.
  ConstraintError(const std::string& place, grammar::Refusal refusal);
  // The field as OpenAI's API names it: "response_format.json_schema.schema", "tools[0].function.parameters".
  // It ends where a schema begins; refusal().pointer leads to the place in the schema.
  const std::string& param() const { return param_; }

 private:
  std::string param_;
};

// What a whole text must satisfy.
struct TextConstraint {
  enum class Kind { json_object, schema, regex, grammar, choices };

  Kind kind = Kind::json_object;
  std::string source = {};                // a schema as JSON, an expression, or GBNF
  std::vector<std::string> choices = {};  // for Kind::choices
  bool compact = false;                   // JSON without blanks
  std::string place = {};                 // JSON pointer to the field in the request
  bool operator==(const TextConstraint&) const = default;
};

struct OfferedFunction {
  std::string name;
  std::string schema = {};  // of the arguments, as JSON; empty: any object
  // If false, a schema that cannot be enforced becomes any JSON object, and a note says so.
  bool strict = false;
  std::string place = {};  // JSON pointer to the schema in the request
  bool operator==(const OfferedFunction&) const = default;
};

enum class CallMode { automatic, required };

struct ReplyConstraint {
  std::optional<TextConstraint> text = {};      // of the answer; calls and reasoning are not part of it
  std::vector<OfferedFunction> functions = {};  // that may be called; empty: none
  CallMode calls = CallMode::automatic;
  bool parallel_calls = true;  // several calls in one reply

  bool is_empty() const { return !text && functions.empty(); }
  bool operator==(const ReplyConstraint&) const = default;
};

}  // namespace inferno
