// + - * / // % ** and signs, on numbers, texts and lists, with Python's rules and messages.
#include <fmt/format.h>

#include <cmath>

#include "chat/jinja/formatting.h"
#include "chat/jinja/operations.h"

namespace inferno::jinja {
namespace {

std::string_view symbol_of(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add: return "+";
    case ArithmeticOperator::subtract: return "-";
    case ArithmeticOperator::multiply: return "*";
    case ArithmeticOperator::divide: return "/";
    case ArithmeticOperator::floor_divide: return "//";
    case ArithmeticOperator::modulo: return "%";
    case ArithmeticOperator::power: return "** or pow()";
  }
  return {};
}

[[noreturn]] void refuse_overflow(const Meter& meter) {
  refuse(meter, "the result is an integer beyond 64 bits");
}
[[noreturn]] void refuse_zero(const Meter& meter) {
  refuse(meter, "division by zero");
}

std::int64_t floor_divide(const Meter& meter, std::int64_t a, std::int64_t b) {
  if (b == 0) refuse_zero(meter);
  if (a == INT64_MIN && b == -1) refuse_overflow(meter);
  const std::int64_t quotient = a / b;
  return quotient * b != a && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(const Meter& meter, std::int64_t a, std::int64_t b) {
  if (b == 0) refuse_zero(meter);
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  const double exact = (a - floor_modulo(a, b)) / b;
  if (exact == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(exact);
  return exact - floored > 0.5 ? floored + 1 : floored;
}

Value integer_power(const Meter& meter, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) refuse(meter, "0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) refuse_overflow(meter);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_overflow(meter);
  }
  return result;
}

Value integers(const Meter& meter, ArithmeticOperator operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflowed = false;
  switch (operation) {
    case ArithmeticOperator::add: overflowed = __builtin_add_overflow(a, b, &result); break;
    case ArithmeticOperator::subtract: overflowed = __builtin_sub_overflow(a, b, &result); break;
    case ArithmeticOperator::multiply: overflowed = __builtin_mul_overflow(a, b, &result); break;
    case ArithmeticOperator::divide:
      if (b == 0) refuse_zero(meter);
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case ArithmeticOperator::floor_divide: result = floor_divide(meter, a, b); break;
    case ArithmeticOperator::modulo: result = floor_modulo(meter, a, b); break;
    case ArithmeticOperator::power: return integer_power(meter, a, b);
  }
  if (overflowed) refuse_overflow(meter);
  return result;
}

Value floats(const Meter& meter, ArithmeticOperator operation, double a, double b) {
  switch (operation) {
    case ArithmeticOperator::add: return a + b;
    case ArithmeticOperator::subtract: return a - b;
    case ArithmeticOperator::multiply: return a * b;
    case ArithmeticOperator::divide:
      if (b == 0) refuse_zero(meter);
      return a / b;
    case ArithmeticOperator::floor_divide:
      if (b == 0) refuse_zero(meter);
      return floor_divide(a, b);
    case ArithmeticOperator::modulo:
      if (b == 0) refuse_zero(meter);
      return floor_modulo(a, b);
    case ArithmeticOperator::power: break;
  }
  if (a == 0 && b < 0) refuse(meter, "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) refuse(meter, "the result is a complex number");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) refuse(meter, "the result is out of range");
  return result;
}

// Checked before anything is built: the product of two harmless numbers may be enormous.
void check_repetition(Meter& meter, std::size_t bytes, std::int64_t count) {
  std::size_t total = 0;
  const bool overflowed = __builtin_mul_overflow(bytes, static_cast<std::size_t>(count), &total);
  if (overflowed || total > meter.budgets().heap_bytes) meter.take(meter.budgets().heap_bytes + 1);
}

Value repeat_text(Meter& meter, const String& string, std::int64_t count) {
  if (count <= 0) return String{{}, string.markup};
  check_repetition(meter, string.text.size(), count);
  Text result;
  Text unit = string.text;
  for (; count > 0; count >>= 1) {
    if ((count & 1) != 0) result.append(meter, unit);
    if (count > 1) unit.append(meter, unit);
  }
  return String{std::move(result), string.markup};
}

Value repeat_sequence(Meter& meter, const Sequence& sequence, std::int64_t count) {
  std::vector<Value> items;
  if (count > 0) {
    check_repetition(meter, sequence.items.size() * sizeof(Value), count);
    items.reserve(sequence.items.size() * static_cast<std::size_t>(count));
    for (; count > 0; --count) items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return make_sequence(meter, std::move(items),
                       sequence.kind == SequenceKind::list ? SequenceKind::list : SequenceKind::tuple);
}

std::optional<Value> add_containers(Meter& meter, const Value& left, const Value& right) {
  if (const auto* string = left.get<String>()) {
    if (const auto* other = right.get<String>()) return concatenate_strings(meter, *string, *other);
    refuse(meter, fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
  }
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a == nullptr) return std::nullopt;
  const bool list = a->kind == SequenceKind::list;
  if (b == nullptr || list != (b->kind == SequenceKind::list)) {
    const std::string_view name = list ? "list" : "tuple";
    refuse(meter, fmt::format("can only concatenate {} (not \"{}\") to {}", name, type_name(right), name));
  }
  std::vector<Value> items;
  items.reserve(a->items.size() + b->items.size());
  items.insert(items.end(), a->items.begin(), a->items.end());
  items.insert(items.end(), b->items.begin(), b->items.end());
  return make_sequence(meter, std::move(items), list ? SequenceKind::list : SequenceKind::tuple);
}

std::optional<Value> repeat(Meter& meter, const Value& what, const Value& times) {
  const auto count = as_integer(times);
  if (!count) return std::nullopt;
  if (const auto* string = what.get<String>()) return repeat_text(meter, *string, *count);
  if (const Sequence* sequence = what.sequence()) return repeat_sequence(meter, *sequence, *count);
  return std::nullopt;
}

}  // namespace

Value arithmetic(Meter& meter, ArithmeticOperator operation, const Value& left, const Value& right) {
  meter.step();
  // A format may print an undefined value; no other operator accepts one.
  const bool formats = operation == ArithmeticOperator::modulo && left.is_string();
  if (formats) return format_percent(meter, *left.get<String>(), right);
  for (const Value* side : {&left, &right}) {
    if (const auto* missing = side->get<Undefined>()) refuse_undefined(meter, *missing);
  }
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  if (a && b) return integers(meter, operation, *a, *b);
  const auto x = as_number(left);
  const auto y = as_number(right);
  if (x && y) return floats(meter, operation, *x, *y);
  if (operation == ArithmeticOperator::add) {
    if (auto sum = add_containers(meter, left, right)) return *std::move(sum);
  }
  if (operation == ArithmeticOperator::multiply) {
    if (auto product = repeat(meter, left, right)) return *std::move(product);
    if (auto product = repeat(meter, right, left)) return *std::move(product);
  }
  refuse(meter, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol_of(operation),
                            type_name(left), type_name(right)));
}

Value negate(Meter& meter, const Value& operand, bool negative) {
  if (const auto* missing = operand.get<Undefined>()) refuse_undefined(meter, *missing);
  if (const auto integer = as_integer(operand)) {
    if (!negative) return *integer;
    if (*integer == INT64_MIN) refuse_overflow(meter);
    return -*integer;
  }
  if (const auto* number = operand.get<double>()) return negative ? -*number : *number;
  refuse(meter, fmt::format("bad operand type for unary {}: '{}'", negative ? "-" : "+", type_name(operand)));
}

}  // namespace inferno::jinja
