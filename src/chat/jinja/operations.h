// Python's operators on values: truth, equality, order, arithmetic, subscripts, iteration, printing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/ast.h"
#include "chat/jinja/value.h"

namespace inferno::jinja {

// Ends the rendering with Error{unsupported} naming the template and the line.
[[noreturn]] void refuse(const Meter& meter, const std::string& problem);

// Fails with the reason an undefined value carries.
[[noreturn]] void refuse_undefined(const Meter& meter, const Undefined& value);

bool is_true(const Value& value);
bool equals(Meter& meter, const Value& left, const Value& right);
bool compare(Meter& meter, CompareOperator operation, const Value& left, const Value& right);
bool contains(Meter& meter, const Value& container, const Value& item);
Value arithmetic(Meter& meter, ArithmeticOperator operation, const Value& left, const Value& right);
Value negate(Meter& meter, const Value& operand, bool negative);

// len(); nullopt for what has no length.
std::optional<std::int64_t> length_of(const Value& value);

// object.name, and object[index]; undefined when there is no such thing. See Environment.getattr/getitem.
Value get_attribute(Meter& meter, const Value& object, std::string_view name);
Value get_item(Meter& meter, const Value& object, const Value& index);
Value get_slice(Meter& meter, const Value& object, const Value& start, const Value& stop, const Value& step);

// Goes through a value as Python's iter() would.
class Iteration {
 public:
  // Refuses what cannot be iterated.
  Iteration(Meter& meter, Value source);
  std::optional<Value> next(Meter& meter);

 private:
  Value source_;
  std::size_t at_ = 0;  // index, or byte offset in a string
};
bool is_iterable(const Value& value);
std::vector<Value> to_vector(Meter& meter, const Value& iterable);

// str(): what {{ }} prints.
Text to_text(Meter& meter, const Value& value);
// repr(): how a value looks inside a printed list.
Text to_repr(Meter& meter, const Value& value);

// HTML escaping, kept because Markup + str escapes in Python, too.
Text escape_html(Meter& meter, const Text& text);
Value concatenate_strings(Meter& meter, const String& left, const String& right);

// An integer index or count; refuses other kinds. True and False are integers to Python.
std::int64_t to_index(const Meter& meter, const Value& value, std::string_view what);
std::optional<std::int64_t> as_integer(const Value& value);  // int or bool
std::optional<double> as_number(const Value& value);         // int, bool or float

}  // namespace inferno::jinja
