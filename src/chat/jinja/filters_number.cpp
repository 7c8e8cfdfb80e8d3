// Filters to and from numbers.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "chat/jinja/filter_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/numbers.h"

namespace inferno::jinja {
namespace {

std::optional<Value> truncated(Meter& meter, double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (!(std::fabs(number) < 9.2e18)) refuse(meter, "the number is beyond 64 bits");
  return static_cast<std::int64_t>(number);
}

Value to_int(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "int", arguments, {"default", "base"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  const Value otherwise = given.value(0, std::int64_t{0});
  if (const auto integer = as_integer(input)) return *integer;
  if (const auto* number = input.get<double>()) {
    if (std::isinf(*number)) refuse(meter, "cannot convert float infinity to integer");
    return truncated(meter, *number).value_or(otherwise);
  }
  const Text* text = input.text();
  if (text == nullptr) return otherwise;
  const std::int64_t base = given.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) refuse(meter, "int() base must be >= 2 and <= 36, or 0");
  bool overflowed = false;
  const auto integer = parse_int(text->view(), static_cast<int>(base), overflowed);
  if (overflowed) refuse(meter, "the number is beyond 64 bits");
  if (integer) return *integer;
  // "42.23"|int is 42.
  const auto number = parse_float(text->view());
  return number ? truncated(meter, *number).value_or(otherwise) : otherwise;
}

Value to_float(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "float", arguments, {"default"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  if (const auto number = as_number(input)) return *number;
  if (const Text* text = input.text()) {
    if (const auto number = parse_float(text->view())) return *number;
  }
  return given.value(0, 0.0);
}

Value absolute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "abs", arguments, {});
  if (const auto integer = as_integer(input)) {
    if (*integer == INT64_MIN) refuse(meter, "the result is an integer beyond 64 bits");
    return *integer < 0 ? -*integer : *integer;
  }
  if (const auto* number = input.get<double>()) return std::fabs(*number);
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  refuse(meter, fmt::format("bad operand type for abs(): '{}'", type_name(input)));
}

// round(): to even, on the decimal the float stands for, hence through its exact digits.
double round_float(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  if (digits < -300) return std::copysign(0.0, number);
  if (digits >= 0) return *parse_float(fmt::format("{:.{}f}", number, digits));
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / scale) * scale;
}

std::int64_t round_integer(Meter& meter, std::int64_t number, std::int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  std::int64_t scale = 1;
  for (std::int64_t i = digits; i < 0; ++i) scale *= 10;
  std::int64_t rest = number % scale;
  if (rest < 0) rest += scale;
  std::int64_t down = 0;
  if (__builtin_sub_overflow(number, rest, &down)) refuse(meter, "the result is an integer beyond 64 bits");
  const bool up = rest * 2 > scale || (rest * 2 == scale && (down / scale) % 2 != 0);
  if (up && __builtin_add_overflow(down, scale, &down))
    refuse(meter, "the result is an integer beyond 64 bits");
  return down;
}

Value round(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "round", arguments, {"precision", "method"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  const auto number = as_number(input);
  if (!number) refuse(meter, fmt::format("type {} doesn't define __round__ method", type_name(input)));
  const std::int64_t precision = given.integer(0, 0);
  const std::string method = given[1] == nullptr ? "common" : std::string(to_text(meter, *given[1]).view());
  if (method == "common") {
    if (const auto integer = as_integer(input)) return round_integer(meter, *integer, precision);
    return round_float(*number, precision);
  }
  if (method != "ceil" && method != "floor") refuse(meter, "method must be common, ceil or floor");
  if (std::llabs(precision) > 300) refuse(meter, "round() asks for too many digits");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *number * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Value sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "sum", arguments, {"attribute", "start"});
  const AttributePath path(meter, given[0]);
  Value total = given.value(1, std::int64_t{0});
  if (total.is_string()) refuse(meter, "sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : to_vector(meter, input)) {
    total = arithmetic(meter, ArithmeticOperator::add, total, path.read(meter, item));
  }
  return total;
}

Value file_size(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "filesizeformat", arguments, {"binary"});
  auto bytes = as_number(input);
  if (const Text* text = input.text()) bytes = parse_float(text->view());
  if (!bytes) refuse(meter, "filesizeformat needs a number");
  const bool binary = given.truth(0, false);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return Text::constant("1 Byte");
  if (*bytes < base) return make_text(meter, fmt::format("{} Bytes", static_cast<std::int64_t>(*bytes)));
  constexpr std::array<char, 8> prefixes = {'K', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'};
  double unit = base;
  std::size_t index = 0;
  while (index + 1 < prefixes.size() && *bytes >= unit * base) {
    unit *= base;
    ++index;
  }
  std::string name(1, prefixes[index]);
  if (!binary && index == 0) name = "k";
  return make_text(meter, fmt::format("{:.1f} {}{}", *bytes / unit, name, binary ? "iB" : "B"));
}

constexpr FilterEntry entries[] = {
    {"int", to_int},  {"float", to_float}, {"abs", absolute},
    {"round", round}, {"sum", sum},        {"filesizeformat", file_size},
};

}  // namespace

std::span<const FilterEntry> number_filters() {
  return entries;
}

FilterFunction find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), layout_filters(), sequence_filters(), choice_filters(), number_filters()}) {
    for (const FilterEntry& entry : table) {
      if (entry.name == name) return entry.function;
    }
  }
  return nullptr;
}

}  // namespace inferno::jinja
