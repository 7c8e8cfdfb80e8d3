// The methods of str that answer yes or no.
#include "chat/jinja/interpreter.h"
#include "chat/jinja/method_tables.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

using Question = bool (*)(char32_t);

// Whether every character satisfies it; the empty string gets `when_empty`.
template <Question question, bool when_empty = false>
Value all(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "str method", arguments, {});
  const std::string_view view = self.text()->view();
  meter.touch(view.size() * 8);
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    if (!question(point.value)) return false;
    at += point.bytes;
  }
  return !view.empty() || when_empty;
}

template <auto test_name>
Value by_test(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return find_test(test_name())(interpreter, self, arguments);
}

bool is_ascii(char32_t value) {
  return value < 0x80;
}

Value is_identifier(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "isidentifier", arguments, {});
  const std::string_view view = self.text()->view();
  interpreter.meter().touch(view.size() * 8);
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const bool fits = point.value == U'_' || is_alpha(point.value) || (at > 0 && is_alnum(point.value));
    if (!fits) return false;
    at += point.bytes;
  }
  return !view.empty();
}

// Upper case only after uncased characters, lower case only after cased ones.
Value is_titled(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "istitle", arguments, {});
  const std::string_view view = self.text()->view();
  interpreter.meter().touch(view.size() * 8);
  bool any = false;
  bool after_cased = false;
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const bool high = is_upper(point.value) || is_title(point.value);
    const bool low = is_lower(point.value);
    if ((high && after_cased) || (low && !after_cased)) return false;
    any = any || high || low;
    after_cased = high || low;
    at += point.bytes;
  }
  return any;
}

constexpr MethodEntry methods[] = {
    {"isdigit", all<is_digit>},
    {"isdecimal", all<is_decimal>},
    {"isnumeric", all<is_numeric>},
    {"isalpha", all<is_alpha>},
    {"isalnum", all<is_alnum>},
    {"isspace", all<is_space>},
    {"isprintable", all<is_printable, true>},
    {"isascii", all<is_ascii, true>},
    {"isidentifier", is_identifier},
    {"islower", by_test<[] { return "lower"; }>},
    {"isupper", by_test<[] { return "upper"; }>},
    {"istitle", is_titled},
};

}  // namespace

std::span<const MethodEntry> string_question_methods() {
  return methods;
}

}  // namespace inferno::jinja
