// Operators, attributes and subscripts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

bool is_numeric_value(const Value& value) {
  return as_number(value).has_value();
}

// Negative, zero or positive; nullopt if either is NaN.
std::optional<int> order_numbers(const Value& left, const Value& right) {
  const auto* a = left.get<double>();
  const auto* b = right.get<double>();
  if ((a != nullptr && std::isnan(*a)) || (b != nullptr && std::isnan(*b))) return std::nullopt;
  return compare_keys(left, right);
}

bool equal_sequences(Meter& meter, const Sequence& left, const Sequence& right) {
  const bool left_is_list = left.kind == SequenceKind::list;
  if (left_is_list != (right.kind == SequenceKind::list) || left.items.size() != right.items.size())
    return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!equals(meter, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Meter& meter, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const DictEntry& entry : left.entries) {
    const Value* other = right.find(entry.key);
    if (other == nullptr || !equals(meter, entry.value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& left, const Range& right) {
  const std::int64_t size = left.size();
  if (size != right.size()) return false;
  return size == 0 || (left.start == right.start && (size == 1 || left.step == right.step));
}

// Lists and tuples compare by their first difference.
std::optional<int> order_sequences(Meter& meter, const Sequence& left, const Sequence& right) {
  const std::size_t common = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (equals(meter, left.items[i], right.items[i])) continue;
    return compare(meter, CompareOperator::less, left.items[i], right.items[i]) ? -1 : 1;
  }
  if (left.items.size() == right.items.size()) return 0;
  return left.items.size() < right.items.size() ? -1 : 1;
}

std::string_view symbol_of(CompareOperator operation) {
  switch (operation) {
    case CompareOperator::less: return "<";
    case CompareOperator::less_equal: return "<=";
    case CompareOperator::greater: return ">";
    case CompareOperator::greater_equal: return ">=";
    case CompareOperator::equal: return "==";
    case CompareOperator::not_equal: return "!=";
    case CompareOperator::in: return "in";
    case CompareOperator::not_in: return "not in";
  }
  return {};
}

std::optional<int> order(Meter& meter, CompareOperator operation, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (const auto* missing = side->get<Undefined>()) refuse_undefined(meter, *missing);
  }
  if (is_numeric_value(left) && is_numeric_value(right)) return order_numbers(left, right);
  if (left.is_string() && right.is_string()) {
    meter.touch(std::min(left.text()->size(), right.text()->size()));
    return left.text()->view().compare(right.text()->view());
  }
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a != nullptr && b != nullptr && (a->kind == SequenceKind::list) == (b->kind == SequenceKind::list)) {
    return order_sequences(meter, *a, *b);
  }
  refuse(meter, fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol_of(operation),
                            type_name(left), type_name(right)));
}

bool contains_key(Meter& meter, const Dict& dict, const Value& key) {
  if (!is_hashable(key)) refuse(meter, fmt::format("unhashable type: '{}'", type_name(key)));
  return dict.find(key) != nullptr;
}

}  // namespace

bool equals(Meter& meter, const Value& left, const Value& right) {
  meter.step();
  if (is_numeric_value(left) && is_numeric_value(right)) return order_numbers(left, right) == 0;
  if (left.is_string() && right.is_string()) {
    if (left.text()->size() != right.text()->size()) return false;
    meter.touch(left.text()->size());
    return left.text()->view() == right.text()->view();
  }
  if (left.is_undefined() || left.is_none()) return left.variant().index() == right.variant().index();
  if (left.sequence() != nullptr && right.sequence() != nullptr) {
    return equal_sequences(meter, *left.sequence(), *right.sequence());
  }
  if (left.dict() != nullptr && right.dict() != nullptr)
    return equal_dicts(meter, *left.dict(), *right.dict());
  const auto* left_range = left.shared<const Range>();
  const auto* right_range = right.shared<const Range>();
  if (left_range != nullptr && right_range != nullptr) return equal_ranges(*left_range, *right_range);
  return left.variant().index() == right.variant().index() && !is_numeric_value(left) &&
         compare_keys(left, right) == 0;
}

bool compare(Meter& meter, CompareOperator operation, const Value& left, const Value& right) {
  switch (operation) {
    case CompareOperator::equal: return equals(meter, left, right);
    case CompareOperator::not_equal: return !equals(meter, left, right);
    case CompareOperator::in: return contains(meter, right, left);
    case CompareOperator::not_in: return !contains(meter, right, left);
    case CompareOperator::less:
    case CompareOperator::less_equal:
    case CompareOperator::greater:
    case CompareOperator::greater_equal: break;
  }
  meter.step();
  const auto ordered = order(meter, operation, left, right);
  if (!ordered) return false;
  if (operation == CompareOperator::less) return *ordered < 0;
  if (operation == CompareOperator::less_equal) return *ordered <= 0;
  if (operation == CompareOperator::greater) return *ordered > 0;
  return *ordered >= 0;
}

bool contains(Meter& meter, const Value& container, const Value& item) {
  meter.step();
  if (const Text* text = container.text()) {
    if (!item.is_string()) {
      refuse(meter, fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    meter.touch(text->size());
    return find_text(text->view(), item.text()->view(), 0) != std::string_view::npos;
  }
  if (const Dict* dict = container.dict()) return contains_key(meter, *dict, item);
  if (const auto* view = container.shared<const DictView>(); view && view->kind == DictViewKind::keys) {
    return contains_key(meter, *view->dict, item);
  }
  if (!is_iterable(container)) {
    refuse(meter, fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  Iteration iteration(meter, container);
  while (const auto candidate = iteration.next(meter)) {
    if (equals(meter, *candidate, item)) return true;
  }
  return false;
}

// + - * / // % ** and signs, on numbers, texts and lists, with Python's rules and messages.
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

// Checked in advance: a short text repeated an innocent number of times may be enormous.
void check_repetition(Meter& meter, std::size_t bytes, std::int64_t count) {
  std::size_t total = 0;
  const bool overflowed = __builtin_mul_overflow(bytes, static_cast<std::size_t>(count), &total);
  if (overflowed || total > meter.budgets().heap_bytes) meter.allocate(meter.budgets().heap_bytes + 1);
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
  // Formatting may print an undefined value; no other operator accepts one.
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

Value apply_sign(Meter& meter, const Value& operand, bool negative) {
  if (const auto* missing = operand.get<Undefined>()) refuse_undefined(meter, *missing);
  if (const auto integer = as_integer(operand)) {
    if (!negative) return *integer;
    if (*integer == INT64_MIN) refuse_overflow(meter);
    return -*integer;
  }
  if (const auto* number = operand.get<double>()) return negative ? -*number : *number;
  refuse(meter, fmt::format("bad operand type for unary {}: '{}'", negative ? "-" : "+", type_name(operand)));
}

// Attributes, subscripts and slices.
namespace {

// How Jinja2 describes the owner of a missing attribute: "dict object".
std::string object_description(const Value& object) {
  if (object.is_none()) return "None";
  if (object.shared<Namespace>() != nullptr) return "jinja2.utils.Namespace object";
  return fmt::format("{} object", type_name(object));
}

Value missing_attribute(const Value& object, std::string_view name) {
  return undefined(
      fmt::format("'{}' has no attribute '{}'", object_description(object), name.substr(0, 200)));
}

Value unsafe_attribute(const Value& object, std::string_view name) {
  return undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name.substr(0, 200),
                               type_name(object)));
}

std::optional<Value> plain_attribute(const Value& object, std::string_view name) {
  if (const auto* space = object.shared<Namespace>()) {
    const Value* found = space->find(name);
    if (found == nullptr) return std::nullopt;
    return name.starts_with('_') ? unsafe_attribute(object, name) : *found;
  }
  if (const Sequence* group = object.sequence(); group != nullptr && group->kind == SequenceKind::group) {
    if (name == "grouper") return group->items[0];
    if (name == "list") return group->items[1];
  }
  if (const auto* range = object.shared<const Range>()) {
    if (name == "start") return range->start;
    if (name == "stop") return range->stop;
    if (name == "step") return range->step;
  }
  if (const auto* cycler = object.shared<Cycler>(); cycler != nullptr && name == "current") {
    return cycler->items->items[cycler->position];
  }
  if (const auto* macro = object.shared<const MacroValue>(); macro != nullptr && name == "name") {
    return Value(Text::constant(std::string(macro->name)));
  }
  return std::nullopt;
}

// Python's getattr, with the restrictions of Jinja2's sandbox.
std::optional<Value> python_attribute(Meter& meter, const Value& object, std::string_view name) {
  if (auto found = plain_attribute(object, name)) return found;
  if (name.starts_with("__") && name.ends_with("__")) return unsafe_attribute(object, name);
  if (is_forbidden_method(object, name)) return unsafe_attribute(object, name);
  if (is_unsupported_method(object, name)) {
    refuse(meter, fmt::format("the method '{}' of '{}' is not supported", name, type_name(object)));
  }
  if (const auto function = find_method(object, name)) {
    return std::shared_ptr<const Callable>(new Callable{
        .name = name, .function = function, .self = object, .charge = {&meter, sizeof(Callable)}});
  }
  return std::nullopt;
}

std::optional<std::size_t> absolute_index(const Value& index, std::int64_t size) {
  const auto wanted = as_integer(index);
  if (!wanted) return std::nullopt;
  const std::int64_t at = *wanted < 0 ? *wanted + size : *wanted;
  if (at < 0 || at >= size) return std::nullopt;
  return static_cast<std::size_t>(at);
}

std::optional<Value> python_item(Meter& meter, const Value& object, const Value& index) {
  if (const Dict* dict = object.dict()) {
    if (!is_hashable(index)) return std::nullopt;
    const Value* found = dict->find(index);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (const Sequence* sequence = object.sequence()) {
    const auto at = absolute_index(index, static_cast<std::int64_t>(sequence->items.size()));
    return at ? std::optional<Value>(sequence->items[*at]) : std::nullopt;
  }
  if (const auto* string = object.get<String>()) {
    if (!as_integer(index)) return std::nullopt;
    const std::string_view view = string->text.view();
    meter.touch(view.size());
    const auto at = absolute_index(index, static_cast<std::int64_t>(code_point_count(view)));
    if (!at) return std::nullopt;
    const std::size_t offset = offset_of(view, *at);
    return String{string->text.slice(offset, code_point_at(view, offset).bytes), string->markup};
  }
  if (const auto* range = object.shared<const Range>()) {
    const auto at = absolute_index(index, range->size());
    if (!at) return std::nullopt;
    return range->at(*at);
  }
  return std::nullopt;
}

struct SliceBounds {
  std::int64_t start, step, count;
};

// Python's slice.indices().
SliceBounds slice_bounds(const Meter& meter, std::int64_t size, const Value& start, const Value& stop,
                         const Value& step) {
  constexpr std::string_view what = "slice indices";
  const std::int64_t stride = step.is_none() ? 1 : to_index(meter, step, what);
  if (stride == 0) refuse(meter, "slice step cannot be zero");
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? size : size - 1;
  const auto clamp = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    std::int64_t at = to_index(meter, bound, what);
    if (at < 0) at += size;
    return std::clamp(at, low, high);
  };
  const std::int64_t from = clamp(start, stride > 0 ? low : high);
  const std::int64_t to = clamp(stop, stride > 0 ? high : low);
  return {.start = from, .step = stride, .count = Range{from, to, stride}.size()};
}

Value slice_text(Meter& meter, const String& string, const SliceBounds& bounds) {
  const std::string_view view = string.text.view();
  meter.touch(view.size());
  if (bounds.count == 0) return String{{}, string.markup};
  if (bounds.step == 1) {
    const std::size_t from = offset_of(view, static_cast<std::size_t>(bounds.start));
    const std::size_t bytes = offset_of(view.substr(from), static_cast<std::size_t>(bounds.count));
    return String{string.text.slice(from, bytes), string.markup};
  }
  const HeapCharge charge(&meter, (view.size() + 1) * sizeof(std::size_t));
  std::vector<std::size_t> offsets;
  offsets.reserve(view.size() + 1);
  for (std::size_t at = 0; at < view.size(); at += code_point_at(view, at).bytes) offsets.push_back(at);
  offsets.push_back(view.size());
  Text result;
  for (std::int64_t i = 0; i < bounds.count; ++i) {
    const auto at = static_cast<std::size_t>(bounds.start + i * bounds.step);
    result.append(meter, string.text.slice(offsets[at], offsets[at + 1] - offsets[at]));
  }
  return String{std::move(result), string.markup};
}

}  // namespace

Value get_attribute(Meter& meter, const Value& object, std::string_view name) {
  if (const auto* missing = object.get<Undefined>()) refuse_undefined(meter, *missing);
  if (auto found = python_attribute(meter, object, name)) return *std::move(found);
  if (const Dict* dict = object.dict()) {
    if (const Value* value = dict->find(name)) return *value;
  }
  return missing_attribute(object, name);
}

Value get_item(Meter& meter, const Value& object, const Value& index) {
  if (const auto* missing = object.get<Undefined>()) refuse_undefined(meter, *missing);
  if (auto found = python_item(meter, object, index)) return *std::move(found);
  if (const Text* name = index.text()) {
    if (auto found = python_attribute(meter, object, name->view())) return *std::move(found);
    return missing_attribute(object, name->view());
  }
  const Text shown = to_repr(meter, index);
  return undefined(
      fmt::format("{} has no element {}", object_description(object), shown.view().substr(0, 200)));
}

Value get_slice(Meter& meter, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (const auto* missing = object.get<Undefined>()) refuse_undefined(meter, *missing);
  const auto size = object.dict() == nullptr ? length_of(object) : std::nullopt;
  if (const auto* string = object.get<String>()) {
    return slice_text(meter, *string, slice_bounds(meter, *size, start, stop, step));
  }
  if (const Sequence* sequence = object.sequence()) {
    const SliceBounds bounds = slice_bounds(meter, *size, start, stop, step);
    std::vector<Value> items;
    items.reserve(static_cast<std::size_t>(bounds.count));
    for (std::int64_t i = 0; i < bounds.count; ++i) {
      items.push_back(sequence->items[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
    }
    return make_sequence(meter, std::move(items),
                         sequence->kind == SequenceKind::list ? SequenceKind::list : SequenceKind::tuple);
  }
  if (const auto* range = object.shared<const Range>()) {
    const SliceBounds bounds = slice_bounds(meter, *size, start, stop, step);
    std::int64_t offset = 0;
    std::int64_t length = 0;
    Range part{};
    const bool overflowed = __builtin_mul_overflow(bounds.start, range->step, &offset) ||
                            __builtin_add_overflow(range->start, offset, &part.start) ||
                            __builtin_mul_overflow(range->step, bounds.step, &part.step) ||
                            __builtin_mul_overflow(bounds.count, part.step, &length) ||
                            __builtin_add_overflow(part.start, length, &part.stop);
    if (overflowed) refuse(meter, "this slice of a range is beyond 64 bits");
    return std::make_shared<const Range>(part);
  }
  refuse(meter, fmt::format("'{}' object is not subscriptable by a slice", type_name(object)));
}

}  // namespace inferno::jinja
