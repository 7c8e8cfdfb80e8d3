// Truth, equality, order and membership.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/string_search.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {

void refuse(const Meter& meter, const std::string& problem) {
  fail(ErrorKind::unsupported, fmt::format("{}, line {}: {}", meter.template_name(), meter.line(), problem));
}

void refuse_undefined(const Meter& meter, const Undefined& value) {
  refuse(meter, *value.message);
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const auto* integer = value.get<std::int64_t>()) return *integer;
  if (const auto* flag = value.get<bool>()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* number = value.get<double>()) return *number;
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::int64_t to_index(const Meter& meter, const Value& value, std::string_view what) {
  if (const auto* missing = value.get<Undefined>()) refuse_undefined(meter, *missing);
  const auto integer = as_integer(value);
  if (!integer) refuse(meter, fmt::format("{} must be an integer, not {}", what, type_name(value)));
  return *integer;
}

std::optional<std::int64_t> length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) return static_cast<std::int64_t>(code_point_count(text->view()));
  if (const Sequence* sequence = value.sequence()) return static_cast<std::int64_t>(sequence->items.size());
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (const auto* view = value.shared<const DictView>()) {
    return static_cast<std::int64_t>(view->dict->entries.size());
  }
  if (const auto* range = value.shared<const Range>()) return range->size();
  return std::nullopt;
}

bool is_true(const Value& value) {
  if (value.is_none()) return false;
  if (const auto* flag = value.get<bool>()) return *flag;
  if (const auto* integer = value.get<std::int64_t>()) return *integer != 0;
  if (const auto* number = value.get<double>()) return *number != 0;
  if (const Text* text = value.text()) return !text->empty();
  if (const auto length = length_of(value)) return *length != 0;
  return true;
}

namespace {

bool is_numeric_value(const Value& value) {
  return as_number(value).has_value();
}

// Negative, zero, positive; NaN compares as none of them.
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

}  // namespace inferno::jinja
