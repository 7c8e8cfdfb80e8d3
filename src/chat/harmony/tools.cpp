#include "chat/harmony/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "chat/conversation.h"

namespace inferno::harmony {
namespace {

const std::string* find_text(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  return found != nullptr && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

const Json* find_list(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  return found != nullptr && found->is_array() ? found : nullptr;
}

std::string compact(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Strings are quoted unless the schema is an enumeration.
std::string default_comment(const Json& schema) {
  const auto found = schema.find("default");
  if (found == schema.end()) return {};
  if (!found->is_string()) return "default: " + compact(*found);
  const Json* names = find_list(schema, "enum");
  const std::string& text = found->get_ref<const std::string&>();
  return names != nullptr && !names->empty() ? "default: " + text : "default: \"" + text + "\"";
}

std::string with_null(const Json& schema, const std::string& type) {
  const Json* nullable = find_member(schema, "nullable");
  const bool wanted = nullable != nullptr && nullable->is_boolean() && nullable->get<bool>();
  return wanted && type.find("null") == std::string::npos ? type + " | null" : type;
}

std::string joined_types(const Json& types) {
  std::string joined;
  for (const Json& type : types) {
    if (!type.is_string()) continue;
    const std::string& name = type.get_ref<const std::string&>();
    joined += (joined.empty() ? "" : " | ") + (name == "integer" ? std::string("number") : name);
  }
  return joined;
}

std::string joined_names(const Json& schema) {
  std::string joined;
  if (const Json* names = find_list(schema, "enum")) {
    for (const Json& name : *names) {
      if (name.is_string()) joined += (joined.empty() ? "\"" : " | \"") + name.get<std::string>() + "\"";
    }
  }
  return joined;
}

bool is_required(const Json& object, const std::string& property) {
  const Json* required = find_list(object, "required");
  return required != nullptr && std::find(required->begin(), required->end(), property) != required->end();
}

// One alternative of a property: its type, then its own description and default as a comment.
std::string variant_line(const Json& variant, const std::string& indent, const std::string* said_above) {
  std::string line = indent + " | " + with_null(variant, typescript_type(variant, indent + "   "));
  std::vector<std::string> comments;
  const std::string* description = find_text(variant, "description");
  if (description != nullptr && (said_above == nullptr || *description != *said_above)) {
    comments.push_back(*description);
  }
  if (std::string comment = variant.is_object() ? default_comment(variant) : ""; !comment.empty()) {
    comments.push_back(std::move(comment));
  }
  for (std::size_t i = 0; i < comments.size(); ++i) line += (i == 0 ? " // " : " ") + comments[i];
  return line + "\n";
}

// name?:
//  | string // default: "a"
//  | number
// ,
std::string property_with_variants(const std::string& name, const Json& schema, const Json& variants,
                                   const std::string& indent) {
  std::string text;
  const std::string* description = find_text(schema, "description");
  const std::string* first = variants.empty() ? nullptr : find_text(variants.front(), "description");
  const bool above = description != nullptr && (first == nullptr || *first != *description);
  if (above) text += indent + "// " + *description + "\n";
  if (const std::string comment = default_comment(schema); !comment.empty()) {
    text += indent + "// " + comment + "\n";
  }
  text += indent + name + ":\n";
  for (std::size_t i = 0; i < variants.size(); ++i) {
    // The first alternative's description would repeat the comment above the property.
    const std::string* said = i == 0 && above && first != nullptr ? first : description;
    text += variant_line(variants[i], indent, said);
  }
  return text + indent + ",\n";
}

std::string comments_above(const Json& schema, const std::string& indent, bool with_description) {
  std::string text;
  if (const std::string* title = find_text(schema, "title")) {
    text += indent + "// " + *title + "\n" + indent + "//\n";
  }
  if (const std::string* words = find_text(schema, "description"); words != nullptr && with_description) {
    text += indent + "// " + *words + "\n";
  }
  const Json* examples = find_list(schema, "examples");
  if (examples == nullptr || examples->empty()) return text;
  text += indent + "// Examples:\n";
  for (const Json& example : *examples) {
    if (example.is_string()) text += indent + "// - \"" + example.get<std::string>() + "\"\n";
  }
  return text;
}

std::string property(const std::string& name, const Json& schema, const std::string& indent) {
  const Json* variants = find_list(schema, "oneOf");
  std::string text = comments_above(schema, indent, find_member(schema, "oneOf") == nullptr);
  if (variants != nullptr) return text + property_with_variants(name, schema, *variants, indent);
  text += indent + name + ": " + with_null(schema, typescript_type(schema, indent + "    ")) + ",";
  const std::string comment = schema.is_object() ? default_comment(schema) : "";
  return text + (comment.empty() ? "" : " // " + comment) + "\n";
}

std::string object_type(const Json& schema, const std::string& indent) {
  std::string text;
  if (const std::string* words = find_text(schema, "description")) text += indent + "// " + *words + "\n";
  text += "{\n";
  if (const Json* properties = find_member(schema, "properties");
      properties != nullptr && properties->is_object()) {
    for (const auto& [name, value] : properties->items()) {
      text += property(is_required(schema, name) ? name : name + "?", value, indent);
    }
  }
  return text + indent + "}";
}

bool has_parameters(const Json& function) {
  const Json* parameters = find_member(function, "parameters");
  if (parameters == nullptr || !parameters->is_object()) return false;
  const Json* properties = find_member(*parameters, "properties");
  return properties != nullptr && properties->is_object() && !properties->empty();
}

std::string render_function(const Json& function) {
  std::string text;
  if (const std::string* description = find_text(function, "description")) {
    for (std::size_t at = 0; at < description->size();) {
      const std::size_t end = std::min(description->find('\n', at), description->size());
      text += "// " + description->substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  text += "type " + *find_text(function, "name") + " = ";
  if (!has_parameters(function)) return text + "() => any;\n\n";
  return text + "(_: " + typescript_type(function.at("parameters")) + ") => any;\n\n";
}

}  // namespace

std::string typescript_type(const Json& schema, const std::string& indent) {
  if (const Json* types = find_list(schema, "type")) {
    if (std::string joined = joined_types(*types); !joined.empty()) return joined;
  }
  if (const std::string* type = find_text(schema, "type")) {
    if (*type == "object") return object_type(schema, indent);
    if (*type == "number" || *type == "integer") return "number";
    if (*type == "boolean") return "boolean";
    if (*type == "string") {
      std::string names = joined_names(schema);
      return names.empty() ? "string" : names;
    }
    if (*type == "array") {
      const Json* items = find_member(schema, "items");
      return items == nullptr ? "Array<any>" : typescript_type(*items, indent) + "[]";
    }
    return "any";
  }
  const Json* variants = find_list(schema, "oneOf");
  if (variants == nullptr) return "any";
  std::string text;
  for (const Json& variant : *variants) {
    text += (text.empty() ? "" : "\n | ") + typescript_type(variant, indent);
  }
  return text;
}

void check_name(std::string_view name, std::string_view where) {
  const bool plain = std::none_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) <= ' ' || letter == '<' || letter == '>' || letter == '|';
  });
  if (plain && !name.empty() && name.size() <= 256) return;
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected a name of 1 to 256 characters without spaces, <, | and >, found \"{}\"",
                   where, name.substr(0, 80)));
}

const Json& function_of(const Json& tools, std::size_t index) {
  const Json& tool = tools.at(index);
  const std::string where = fmt::format("tools[{}]", index);
  const std::string* type = find_text(tool, "type");
  if (!tool.is_object() || (type != nullptr && *type != "function")) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: expected an object of type \"function\", found {}", where,
                     type == nullptr ? tool.type_name() : "\"" + *type + "\""),
         {.why = "the model calls functions only; other tools would have to run inside the server",
          .next = "declare the tool as a function"});
  }
  const Json* nested = find_member(tool, "function");
  const Json& function = nested == nullptr ? tool : *nested;
  const std::string* name = find_text(function, "name");
  if (name == nullptr)
    fail(ErrorKind::invalid_request, where + ".function: expected an object with a \"name\"");
  check_name(*name, where + ".function.name");
  return function;
}

std::string render_functions(const Json& tools) {
  std::string text = "## functions\n\nnamespace functions {\n\n";
  for (std::size_t i = 0; i < tools.size(); ++i) text += render_function(function_of(tools, i));
  return text + "} // namespace functions";
}

}  // namespace inferno::harmony
