#include "chat/constraint/read_constraint.h"

#include <algorithm>

#include "chat/constraint/fields.h"

namespace inferno {
namespace {

// Whether `name` constrains the text and a field of `fields` does too.
bool is_text_of(const Json& fields, std::string_view name) {
  if (!constraint::is_text_field(name)) return false;
  return std::ranges::any_of(fields.items(),
                             [](const auto& field) { return constraint::is_text_field(field.key()); });
}

}  // namespace

ReplyConstraint read_constraint(const Json& request) {
  const constraint::Field whole{&request, ""};
  ReplyConstraint result;
  result.text = constraint::read_text_constraint(whole);
  constraint::read_tools(result, whole);
  return result;
}

bool is_constraint_field(std::string_view name) {
  // Blanks in JSON concern whatever constrains the text, in the same line or another.
  return constraint::is_text_field(name) || constraint::is_tool_field(name) || name == "whitespace";
}

Json merged_constraint_fields(Json base, const Json& over) {
  if (!base.is_object()) base = Json::object();
  const auto replaces = [&](std::string_view name) { return over.contains(name) || is_text_of(over, name); };
  Json kept = Json::object();
  for (const auto& [name, value] : base.items()) {
    if (!replaces(name)) kept[name] = value;
  }
  // A default for blanks in JSON says nothing about a line that brings an expression or choices.
  if (kept.contains("whitespace")) {
    const auto text = constraint::read_text_constraint({&over, ""});
    if (text && !constraint::is_json(*text)) kept.erase("whitespace");
  }
  kept.update(over);
  return kept;
}

Json response_format_of(const ReplyConstraint& constraint) {
  if (!constraint.text || constraint.text->kind != TextConstraint::Kind::schema) return nullptr;
  const auto schema = parse_json_if_valid(constraint.text->source);
  if (!schema) return nullptr;
  return {{"type", "json_schema"}, {"json_schema", {{"name", "response"}, {"schema", *schema}}}};
}

}  // namespace inferno
