#include "chat/constraint/fields.h"

#include <fmt/format.h>

#include <utility>

namespace inferno::constraint {

Field member(const Field& object, const char* name) {
  Field found{nullptr, fmt::format("{}/{}", object.place, name)};
  if (!object || !object.value->is_object()) return found;
  const auto at = object.value->find(name);
  if (at != object.value->end() && !at->is_null()) found.value = &*at;
  return found;
}

Field element(const Field& list, std::size_t index) {
  return {&list.value->at(index), fmt::format("{}/{}", list.place, index)};
}

void reject(const Field& field, std::string message) {
  throw ConstraintError(
      field.place,
      {.kind = grammar::RefusalKind::invalid, .pointer = {}, .keyword = {}, .message = std::move(message)});
}

void expected(std::string_view what, const Field& field) {
  if (!field) reject(field, fmt::format("missing; expected {}", what));
  std::string found = dumped(*field.value);
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  reject(field, fmt::format("expected {}, found {}", what, found));
}

std::string text(const Field& field) {
  if (!field || !field.value->is_string()) expected("a string", field);
  return field.value->get<std::string>();
}

bool flag(const Field& field, bool otherwise) {
  if (!field) return otherwise;
  if (!field.value->is_boolean()) expected("true or false", field);
  return field.value->get<bool>();
}

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace inferno::constraint
