// Filters that choose, order and group the items of a sequence.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "chat/jinja/filter_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/string_functions.h"

namespace inferno::jinja {

AttributePath::AttributePath(Meter& meter, const Value* attribute, const Value* otherwise)
    : otherwise_(otherwise) {
  if (attribute == nullptr || attribute->is_none()) return;
  if (!attribute->is_string()) {
    parts_.push_back(*attribute);
    return;
  }
  const Text dot = Text::constant(".");
  for (const Text& part : split(meter, *attribute->text(), &dot, -1)) {
    const std::string_view view = part.view();
    const bool is_index = !view.empty() && view.size() < 18 &&
                          std::all_of(view.begin(), view.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts_.push_back(is_index ? Value(static_cast<std::int64_t>(std::stoll(std::string(view))))
                              : Value(part));
  }
}

Value AttributePath::read(Meter& meter, Value item) const {
  for (const Value& part : parts_) {
    item = get_item(meter, item, part);
    if (otherwise_ != nullptr && !otherwise_->is_none() && item.is_undefined()) item = *otherwise_;
  }
  return item;
}

Value ignore_case(Meter& meter, const Value& value) {
  const auto* string = value.get<String>();
  if (string == nullptr) return value;
  return String{change_case(meter, string->text, Case::lower), string->markup};
}

namespace {

struct Keyed {
  Value key;
  Value item;
};

struct KeyReader {
  AttributePath path;
  bool case_sensitive;
  Value read(Meter& meter, const Value& item) const {
    Value key = path.read(meter, item);
    return case_sensitive ? key : ignore_case(meter, key);
  }
};

std::vector<Keyed> with_keys(Meter& meter, const Value& input, const KeyReader& reader) {
  std::vector<Keyed> keyed;
  for (const Value& item : to_vector(meter, input)) keyed.push_back({reader.read(meter, item), item});
  return keyed;
}

void sort_keyed(Meter& meter, std::vector<Keyed>& items, bool reversed) {
  // Python keeps equal items in order also when it sorts downward.
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? compare(meter, CompareOperator::less, b.key, a.key)
                    : compare(meter, CompareOperator::less, a.key, b.key);
  });
}

Value sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<KeyReader> readers;
  const Text comma = Text::constant(",");
  if (given[2] != nullptr && given[2]->is_string()) {
    for (const Text& part : split(meter, *given[2]->text(), &comma, -1)) {
      const Value attribute = part;
      readers.push_back({AttributePath(meter, &attribute), given.truth(1, false)});
    }
  } else {
    readers.push_back({AttributePath(meter, given[2]), given.truth(1, false)});
  }
  std::vector<Keyed> keyed;
  for (const Value& item : to_vector(meter, input)) {
    std::vector<Value> key;
    for (const KeyReader& reader : readers) key.push_back(reader.read(meter, item));
    keyed.push_back({make_sequence(meter, std::move(key)), item});
  }
  sort_keyed(meter, keyed, given.truth(0, false));
  std::vector<Value> sorted;
  for (Keyed& entry : keyed) sorted.push_back(std::move(entry.item));
  return make_sequence(meter, std::move(sorted));
}

Value dict_sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  if (input.dict() == nullptr)
    refuse(meter, fmt::format("'{}' object has no attribute 'items'", type_name(input)));
  const std::string by = given[1] == nullptr ? "key" : std::string(to_text(meter, *given[1]).view());
  if (by != "key" && by != "value") refuse(meter, "You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const DictEntry& entry : input.dict()->entries) {
    const Value& key = by == "key" ? entry.key : entry.value;
    keyed.push_back(
        {given.truth(0, false) ? key : ignore_case(meter, key), make_tuple(meter, {entry.key, entry.value})});
  }
  sort_keyed(meter, keyed, given.truth(2, false));
  std::vector<Value> sorted;
  for (Keyed& entry : keyed) sorted.push_back(std::move(entry.item));
  return make_sequence(meter, std::move(sorted));
}

Value unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "unique", arguments, {"case_sensitive", "attribute"});
  const KeyReader reader{AttributePath(meter, given[1]), given.truth(0, false)};
  const auto before = [](const Value& a, const Value& b) { return compare_keys(a, b) < 0; };
  std::set<Value, decltype(before)> seen(before);
  std::vector<Value> kept;
  for (Keyed& entry : with_keys(meter, input, reader)) {
    if (!is_hashable(entry.key)) refuse(meter, fmt::format("unhashable type: '{}'", type_name(entry.key)));
    if (seen.insert(std::move(entry.key)).second) kept.push_back(std::move(entry.item));
  }
  return make_iterator(meter, std::move(kept));
}

template <CompareOperator better>
Value extreme(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "min/max", arguments, {"case_sensitive", "attribute"});
  const KeyReader reader{AttributePath(meter, given[1]), given.truth(0, false)};
  std::optional<Keyed> best;
  for (Keyed& entry : with_keys(meter, input, reader)) {
    if (!best || compare(meter, better, entry.key, best->key)) best = std::move(entry);
  }
  return best ? std::move(best->item) : undefined("No aggregated item, sequence was empty.");
}

Value group_by(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(meter, given[0], given[1]);
  std::vector<Keyed> keyed = with_keys(meter, input, {path, given.truth(2, false)});
  sort_keyed(meter, keyed, /*reversed=*/false);
  std::vector<Value> groups;
  for (std::size_t start = 0; start < keyed.size();) {
    std::vector<Value> members;
    std::size_t end = start;
    while (end < keyed.size() && equals(meter, keyed[end].key, keyed[start].key)) {
      members.push_back(keyed[end++].item);
    }
    const Value grouper = path.read(meter, members.front());
    const Value list = make_sequence(meter, std::move(members));
    groups.push_back(make_sequence(meter, {grouper, list}, SequenceKind::group));
    start = std::max(end, start + 1);
  }
  return make_sequence(meter, std::move(groups));
}

Value map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  std::vector<Value> mapped;
  const bool by_attribute = arguments.positional.empty();
  if (by_attribute) {
    const Parameters given(meter, "map", arguments, {"attribute", "default"}, 1);
    const AttributePath path(meter, given[0], given[1]);
    for (const Value& item : to_vector(meter, input)) mapped.push_back(path.read(meter, item));
    return make_iterator(meter, std::move(mapped));
  }
  const Text name = to_text(meter, arguments.positional[0]);
  const FilterFunction filter = find_filter(name.view());
  if (filter == nullptr)
    refuse(meter, fmt::format("there is no filter named '{}'", name.view().substr(0, 80)));
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : to_vector(meter, input)) mapped.push_back(filter(interpreter, item, rest));
  return make_iterator(meter, std::move(mapped));
}

// select, reject, selectattr and rejectattr.
template <bool keeps, bool reads_attribute>
Value choose(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  std::vector<Value> kept;
  if (!is_true(input)) return make_iterator(meter, std::move(kept));
  Arguments rest = arguments;
  const auto take_first = [&] {
    Value value = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  Value attribute;
  if (reads_attribute) {
    if (rest.positional.empty()) refuse(meter, "Missing parameter for attribute name");
    attribute = take_first();
  }
  const AttributePath path(meter, reads_attribute ? &attribute : nullptr);
  TestFunction test = nullptr;
  if (!rest.positional.empty()) {
    const Text name = to_text(meter, take_first());
    test = find_test(name.view());
    if (test == nullptr) refuse(meter, fmt::format("there is no test named '{}'", name.view().substr(0, 80)));
  }
  for (const Value& item : to_vector(meter, input)) {
    const Value tested = path.read(meter, item);
    const bool passes = test == nullptr ? is_true(tested) : test(interpreter, tested, rest);
    if (passes == keeps) kept.push_back(item);
  }
  return make_iterator(meter, std::move(kept));
}

constexpr FilterEntry entries[] = {
    {"sort", sort},
    {"dictsort", dict_sort},
    {"unique", unique},
    {"min", extreme<CompareOperator::less>},
    {"max", extreme<CompareOperator::greater>},
    {"groupby", group_by},
    {"map", map},
    {"select", choose<true, false>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<false, true>},
};

}  // namespace

std::span<const FilterEntry> choice_filters() {
  return entries;
}

}  // namespace inferno::jinja
