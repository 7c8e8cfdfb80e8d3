// The fields that say which functions may or must be called: tools, tool_choice and parallel_tool_calls.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "chat/constraint/fields.h"

namespace inferno::constraint {
namespace {

constexpr std::size_t max_name = 128;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name && std::ranges::all_of(name, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.';
  });
}

// Chat completions nest the function, the Responses API does not, and Anthropic's API has another name for
// the schema.
OfferedFunction function_of(const Field& tool) {
  const Field nested = member(tool, "function");
  const Field function = nested ? nested : tool;
  const Field type = member(tool, "type");
  const bool is_function = !type || *type.value == "function" || member(tool, "input_schema");
  if (!is_function) expected("\"function\"", type);
  const Field name = member(function, "name");
  OfferedFunction result{.name = text(name)};
  if (!is_name(result.name)) expected("letters, digits, _ - and ., at most 128", name);
  result.strict = flag(member(function, "strict"), false);
  Field schema = member(function, "parameters");
  if (!schema) schema = member(function, "input_schema");
  result.place = schema.place;
  if (!schema) return result;
  if (!schema.value->is_object() && !schema.value->is_boolean()) expected("a JSON schema", schema);
  result.schema = dumped(*schema.value);
  return result;
}

std::vector<OfferedFunction> functions_of(const Field& tools) {
  std::vector<OfferedFunction> functions;
  if (!tools) return functions;
  if (!tools.value->is_array()) expected("an array", tools);
  std::set<std::string> names;
  for (std::size_t i = 0; i < tools.value->size(); ++i) {
    functions.push_back(function_of(element(tools, i)));
    if (!names.insert(functions.back().name).second) {
      reject(element(tools, i), fmt::format("\"{}\" is the name of an earlier tool", functions.back().name));
    }
  }
  return functions;
}

void keep_only(ReplyConstraint& constraint, const std::set<std::string>& names) {
  std::erase_if(constraint.functions,
                [&](const OfferedFunction& function) { return !names.contains(function.name); });
}

bool is_offered(const ReplyConstraint& constraint, const std::string& name) {
  return std::ranges::any_of(constraint.functions,
                             [&](const OfferedFunction& function) { return function.name == name; });
}

std::string offered_name(const ReplyConstraint& constraint, const Field& field) {
  std::string name = text(field);
  if (!is_offered(constraint, name)) reject(field, fmt::format("\"{}\" is not one of the tools", name));
  return name;
}

void require(ReplyConstraint& constraint, const Field& choice) {
  if (constraint.functions.empty()) reject(choice, "a call is required, but no tools are offered");
  constraint.calls = CallMode::required;
}

void require_one(ReplyConstraint& constraint, const Field& name) {
  keep_only(constraint, {offered_name(constraint, name)});
  constraint.calls = CallMode::required;
}

// "none", "auto", "required" and Anthropic's "any"; false for any other word.
bool take_mode(ReplyConstraint& constraint, const Field& mode) {
  const std::string word = text(mode);
  if (word == "none") {
    constraint.functions.clear();
  } else if (word == "required" || word == "any") {
    require(constraint, mode);
  } else if (word != "auto") {
    return false;
  }
  return true;
}

void take_allowed(ReplyConstraint& constraint, const Field& choice) {
  const Field nested = member(choice, "allowed_tools");
  const Field allowed = nested ? nested : choice;
  const Field list = member(allowed, "tools");
  if (!list || !list.value->is_array()) expected("an array of tools", list);
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.value->size(); ++i) {
    const Field tool = element(list, i);
    const Field function = member(tool, "function");
    names.insert(offered_name(constraint, member(function ? function : tool, "name")));
  }
  keep_only(constraint, names);
  const Field mode = member(allowed, "mode");
  if (mode && !take_mode(constraint, mode)) expected("\"auto\" or \"required\"", mode);
}

void take_choice(ReplyConstraint& constraint, const Field& choice) {
  if (choice.value->is_string()) {
    if (take_mode(constraint, choice)) return;
    if (!is_offered(constraint, text(choice))) {
      expected("none, auto, required or the name of an offered function", choice);
    }
    require_one(constraint, choice);
    return;
  }
  if (!choice.value->is_object()) expected("a string or an object", choice);
  const Field type = member(choice, "type");
  const std::string kind = type ? text(type) : "function";
  if (kind == "allowed_tools") {
    take_allowed(constraint, choice);
  } else if (kind == "function" || kind == "tool") {
    const Field function = member(choice, "function");
    require_one(constraint, member(function ? function : choice, "name"));
  } else if (!take_mode(constraint, type)) {
    expected("\"function\" or \"allowed_tools\"", type);
  }
  if (flag(member(choice, "disable_parallel_tool_use"), false)) constraint.parallel_calls = false;
}

}  // namespace

bool is_tool_field(std::string_view name) {
  return name == "tools" || name == "tool_choice" || name == "parallel_tool_calls";
}

void read_tools(ReplyConstraint& constraint, const Field& request) {
  constraint.functions = functions_of(member(request, "tools"));
  constraint.parallel_calls = flag(member(request, "parallel_tool_calls"), true);
  if (const Field choice = member(request, "tool_choice")) take_choice(constraint, choice);
}

}  // namespace inferno::constraint
