// Reading the fields of a request with errors that carry a JSON pointer; shared by the readers of response
// formats and tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/constraint/reply_constraint.h"
#include "chat/json.h"

namespace inferno::constraint {

// A value of the request and the JSON pointer to it.
struct Field {
  const Json* value = nullptr;  // nullptr if it is absent or null
  std::string place;

  explicit operator bool() const { return value != nullptr; }
};

// The member of an object; absent if `object` is absent or not an object.
Field member(const Field& object, const char* name);
Field element(const Field& list, std::size_t index);

[[noreturn]] void reject(const Field& field, std::string message);
// "expected WHAT, found …"
[[noreturn]] void expected(std::string_view what, const Field& field);

std::string text(const Field& field);
bool flag(const Field& field, bool otherwise);

// JSON as it is sent to the compiler, in the order of its keys.
std::string dumped(const Json& value);

bool is_text_field(std::string_view name);
bool is_tool_field(std::string_view name);
bool is_json(const TextConstraint& constraint);
std::optional<TextConstraint> read_text_constraint(const Field& request);
void read_tools(ReplyConstraint& constraint, const Field& request);

}  // namespace inferno::constraint
