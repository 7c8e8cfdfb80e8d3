#include "chat/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace inferno::jinja {
namespace {

constexpr std::size_t entries_worth_sorting = 12;

// Numbers of every kind share a rank because Python lets them be equal.
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

long double as_number(const Value& value) {  // 64 bits of mantissa: exact for both int64 and double
  if (const auto* flag = value.get<bool>()) return *flag ? 1 : 0;
  if (const auto* integer = value.get<std::int64_t>()) return static_cast<long double>(*integer);
  return static_cast<long double>(*value.get<double>());
}

int compare_numbers(const Value& left, const Value& right) {
  const long double a = as_number(left);
  const long double b = as_number(right);
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

// Keeps the first place and the last value of equal keys.
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
  if (entries.size() >= entries_worth_sorting) order = sorted_order(entries);
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

}  // namespace inferno::jinja
