// What Python does with values: operators, attributes and subscripts (operations.cpp), str(), repr() and
// json.dumps() (printing.cpp), "%" and str.format() (formatting.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/value/value.h"

namespace inferno::jinja {

enum class ArithmeticOperator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOperator : std::uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

bool equals(Meter& meter, const Value& left, const Value& right);
bool compare(Meter& meter, CompareOperator operation, const Value& left, const Value& right);
bool contains(Meter& meter, const Value& container, const Value& item);
Value arithmetic(Meter& meter, ArithmeticOperator operation, const Value& left, const Value& right);
// +operand, or -operand if `negative`.
Value apply_sign(Meter& meter, const Value& operand, bool negative);

// object.name and object[index]; undefined if there is no such thing. Follows Jinja2's Environment.getattr
// and Environment.getitem.
Value get_attribute(Meter& meter, const Value& object, std::string_view name);
Value get_item(Meter& meter, const Value& object, const Value& index);
Value get_slice(Meter& meter, const Value& object, const Value& start, const Value& stop, const Value& step);

// str(): what {{ }} prints.
Text to_text(Meter& meter, const Value& value);
// repr(): how a value is printed inside a list.
Text to_repr(Meter& meter, const Value& value);

// HTML escaping, needed because Markup + str escapes in Python.
Text escape_html(Meter& meter, const Text& text);
Value concatenate_strings(Meter& meter, const String& left, const String& right);

struct JsonStyle {
  bool ensure_ascii = false;  // Hugging Face's default, not Python's
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; nullopt: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// json.dumps().
Text to_json(Meter& meter, const Value& value, const JsonStyle& style);

// "%s" % arguments and "{}".format(arguments).
Value format_percent(Meter& meter, const String& format, const Value& arguments);
Value format_braces(Meter& meter, const String& format, const Arguments& arguments);

}  // namespace inferno::jinja
