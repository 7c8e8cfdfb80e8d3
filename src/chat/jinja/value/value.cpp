#include "chat/jinja/value/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace inferno::jinja {
namespace {

constexpr std::size_t min_sorted_entries = 12;

// Numbers of all types share a rank because they can be equal in Python.
int key_rank(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_none()) return 1;
  if (value.is_string()) return 3;
  if (value.sequence() != nullptr) return 4;
  if (value.get<bool>() || value.get<std::int64_t>() || value.get<double>()) return 2;
  return 5;
}

template <class T>
int three_way(const T& left, const T& right) {
  if (left < right) return -1;
  return right < left ? 1 : 0;
}

// A mantissa of 64 bits is exact for both int64 and double.
long double exact_number(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag ? 1 : 0;
  if (const auto* integer = value.get<std::int64_t>()) return static_cast<long double>(*integer);
  return static_cast<long double>(*value.get<double>());
}

int compare_numbers(const Value& left, const Value& right) {
  const long double a = exact_number(left);
  const long double b = exact_number(right);
  // NaN sorts last and equals itself here, so that the order stays total.
  if (std::isnan(a) || std::isnan(b)) return three_way(std::isnan(a), std::isnan(b));
  return three_way(a, b);
}

int compare_sequences(const Sequence& left, const Sequence& right) {
  const std::size_t common = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (const int order = compare_keys(left.items[i], right.items[i]); order != 0) return order;
  }
  return three_way(left.items.size(), right.items.size());
}

const void* address_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> const void* {
        if constexpr (requires { held.get(); }) {
          return held.get();
        } else {
          return nullptr;
        }
      },
      value.variant());
}

int deepest(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  return depth;
}

std::vector<std::uint32_t> sorted_order(const std::vector<DictEntry>& entries) {
  std::vector<std::uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return compare_keys(entries[a].key, entries[b].key) < 0;
  });
  return order;
}

// Among equal keys, keeps the first position and the last value.
void drop_repeated_keys(std::vector<DictEntry>& entries) {
  const std::vector<std::uint32_t> order = sorted_order(entries);
  std::vector<bool> dropped(entries.size(), false);
  bool any = false;
  for (std::size_t i = 0, first = 0; i < order.size(); ++i) {
    if (i == 0 || compare_keys(entries[order[i]].key, entries[order[first]].key) != 0) {
      first = i;
      continue;
    }
    entries[order[first]].value = entries[order[i]].value;
    dropped[order[i]] = true;
    any = true;
  }
  if (!any) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) entries[kept] = std::move(entries[i]);
    ++kept;
  }
  entries.resize(kept);
}

}  // namespace

int compare_keys(const Value& left, const Value& right) {
  const int rank = key_rank(left);
  if (const int order = three_way(rank, key_rank(right)); order != 0) return order;
  if (rank == 2) return compare_numbers(left, right);
  if (rank == 3) return three_way(left.text()->view(), right.text()->view());
  if (rank == 4) return compare_sequences(*left.sequence(), *right.sequence());
  return three_way(address_of(left), address_of(right));
}

const Value* Dict::find(const Value& key) const {
  if (order.empty()) {
    for (const DictEntry& entry : entries) {
      if (compare_keys(entry.key, key) == 0) return &entry.value;
    }
    return nullptr;
  }
  const auto found =
      std::lower_bound(order.begin(), order.end(), key, [this](std::uint32_t index, const Value& wanted) {
        return compare_keys(entries[index].key, wanted) < 0;
      });
  if (found == order.end() || compare_keys(entries[*found].key, key) != 0) return nullptr;
  return &entries[*found].value;
}

const Value* Dict::find(std::string_view key) const {
  if (order.empty()) {
    for (const DictEntry& entry : entries) {
      if (const Text* text = entry.key.text(); text != nullptr && text->view() == key) return &entry.value;
    }
    return nullptr;
  }
  return find(Value(Text::constant(std::string(key))));
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::int64_t Range::size() const {
  if (step > 0 ? stop <= start : stop >= start) return 0;
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = static_cast<std::uint64_t>(stop);
  const std::uint64_t span = step > 0 ? to - from : from - to;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (span - 1) / stride + 1;
  return count > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(count);
}

Value make_sequence(Meter& meter, std::vector<Value> items, SequenceKind kind) {
  meter.step(static_cast<std::int64_t>(items.size() / 8));
  const int depth = 1 + deepest(items);
  meter.check_depth(depth, "nested values");
  const std::size_t bytes = sizeof(Sequence) + items.capacity() * sizeof(Value);
  return std::shared_ptr<const Sequence>(
      new Sequence{.items = std::move(items), .kind = kind, .depth = depth, .charge = {&meter, bytes}});
}

Value make_tuple(Meter& meter, std::vector<Value> items) {
  return make_sequence(meter, std::move(items), SequenceKind::tuple);
}

Value make_dict(Meter& meter, std::vector<DictEntry> entries) {
  int depth = 0;
  for (const DictEntry& entry : entries) {
    depth = std::max({depth, depth_of(entry.key), depth_of(entry.value)});
  }
  meter.step(static_cast<std::int64_t>(entries.size()));
  meter.check_depth(depth + 1, "nested values");
  drop_repeated_keys(entries);
  std::vector<std::uint32_t> order;
  if (entries.size() >= min_sorted_entries) order = sorted_order(entries);
  const std::size_t bytes =
      sizeof(Dict) + entries.capacity() * sizeof(DictEntry) + order.capacity() * sizeof(std::uint32_t);
  return std::shared_ptr<const Dict>(new Dict{.entries = std::move(entries),
                                              .order = std::move(order),
                                              .depth = depth + 1,
                                              .charge = {&meter, bytes}});
}

Value make_iterator(Meter& meter, std::vector<Value> items, std::string_view python_type) {
  const Value held = make_sequence(meter, std::move(items));
  return std::make_shared<Iterator>(
      Iterator{.items = *held.get<std::shared_ptr<const Sequence>>(), .next = 0, .python_type = python_type});
}

Value make_text(Meter& meter, std::string_view bytes, Origin origin) {
  return Text(meter, bytes, origin);
}

Value undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

std::string_view sequence_type(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::list: return "list";
    case SequenceKind::tuple: return "tuple";
    case SequenceKind::group: return "_GroupTuple";
  }
  return {};
}

std::string_view view_type(DictViewKind kind) {
  switch (kind) {
    case DictViewKind::keys: return "dict_keys";
    case DictViewKind::values: return "dict_values";
    case DictViewKind::items: return "dict_items";
  }
  return {};
}

}  // namespace

std::string_view type_name(const Value& value) {
  using View = std::string_view;
  return std::visit(
      Overloaded{
          [](const Undefined&) -> View { return "Undefined"; },
          [](const None&) -> View { return "NoneType"; },
          [](bool) -> View { return "bool"; },
          [](std::int64_t) -> View { return "int"; },
          [](double) -> View { return "float"; },
          [](const String& string) -> View { return string.markup ? "Markup" : "str"; },
          [](const std::shared_ptr<const Sequence>& sequence) { return sequence_type(sequence->kind); },
          [](const std::shared_ptr<const Dict>&) -> View { return "dict"; },
          [](const std::shared_ptr<Namespace>&) -> View { return "Namespace"; },
          [](const std::shared_ptr<Iterator>& iterator) { return iterator->python_type; },
          [](const std::shared_ptr<const DictView>& view) { return view_type(view->kind); },
          [](const std::shared_ptr<const Range>&) -> View { return "range"; },
          [](const std::shared_ptr<const MacroValue>&) -> View { return "Macro"; },
          [](const std::shared_ptr<LoopState>&) -> View { return "LoopContext"; },
          [](const std::shared_ptr<Cycler>&) -> View { return "Cycler"; },
          [](const std::shared_ptr<Joiner>&) -> View { return "Joiner"; },
          [](const std::shared_ptr<const Callable>&) -> View { return "builtin_function_or_method"; },
      },
      value.variant());
}

int depth_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  if (const auto* iterator = value.shared<Iterator>()) return iterator->items->depth + 1;
  if (const auto* view = value.shared<const DictView>()) return view->dict->depth + 1;
  if (const auto* cycler = value.shared<Cycler>()) return cycler->items->depth + 1;
  if (const auto* joiner = value.shared<Joiner>()) return depth_of(joiner->separator) + 1;
  if (const auto* callable = value.shared<const Callable>()) return depth_of(callable->self) + 1;
  if (const auto* loop = value.shared<LoopState>()) return loop->value_depth + 1;
  return 0;
}

bool is_hashable(const Value& value) {
  if (value.dict() != nullptr) return false;
  if (const Sequence* sequence = value.sequence()) {
    return sequence->kind != SequenceKind::list &&
           std::all_of(sequence->items.begin(), sequence->items.end(), is_hashable);
  }
  const auto* view = value.shared<const DictView>();
  return view == nullptr || view->kind == DictViewKind::values;
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

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.sequence() != nullptr ||
         value.dict() != nullptr || value.shared<Iterator>() != nullptr ||
         value.shared<const DictView>() != nullptr || value.shared<const Range>() != nullptr;
}

Iteration::Iteration(Meter& meter, Value source) : source_(std::move(source)) {
  if (!is_iterable(source_)) {
    refuse(meter, fmt::format("'{}' object is not iterable", type_name(source_)));
  }
}

std::optional<Value> Iteration::next(Meter& meter) {
  meter.step();
  if (const Sequence* sequence = source_.sequence()) {
    if (at_ >= sequence->items.size()) return std::nullopt;
    return sequence->items[at_++];
  }
  if (auto* iterator = source_.shared<Iterator>()) {
    if (iterator->next >= iterator->items->items.size()) return std::nullopt;
    return iterator->items->items[iterator->next++];
  }
  if (const Dict* dict = source_.dict()) {
    if (at_ >= dict->entries.size()) return std::nullopt;
    return dict->entries[at_++].key;
  }
  if (const auto* view = source_.shared<const DictView>()) {
    if (at_ >= view->dict->entries.size()) return std::nullopt;
    const DictEntry& entry = view->dict->entries[at_++];
    if (view->kind == DictViewKind::keys) return entry.key;
    if (view->kind == DictViewKind::values) return entry.value;
    return make_tuple(meter, {entry.key, entry.value});
  }
  if (const auto* string = source_.get<String>()) {
    if (at_ >= string->text.size()) return std::nullopt;
    const std::size_t bytes = code_point_at(string->text.view(), at_).bytes;
    at_ += bytes;
    return string->text.slice(at_ - bytes, bytes);  // iterating over Markup gives plain strings
  }
  if (const auto* range = source_.shared<const Range>()) {
    if (static_cast<std::int64_t>(at_) >= range->size()) return std::nullopt;
    return range->at(at_++);
  }
  return std::nullopt;
}

std::vector<Value> to_vector(Meter& meter, const Value& iterable) {
  if (const Sequence* sequence = iterable.sequence()) {
    meter.step(static_cast<std::int64_t>(sequence->items.size() / 8));
    return sequence->items;
  }
  Iteration iteration(meter, iterable);
  std::vector<Value> items;
  // Charged as it grows: a string of megabytes becomes a far larger list of one-character values.
  HeapCharge charge(&meter, 0);
  while (auto item = iteration.next(meter)) {
    if (items.size() == items.capacity()) charge.resize(2 * (items.size() + 1) * sizeof(Value));
    items.push_back(*std::move(item));
  }
  return items;
}

}  // namespace inferno::jinja
