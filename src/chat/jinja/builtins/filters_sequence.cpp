// Filters that measure, reorder, choose and group the items of a sequence.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

// Reads `attribute="a.b.0"` from an item. Dots go deeper, digits are indices; `otherwise` replaces an
// undefined value on the way.
class AttributePath {
 public:
  // Null or None: the item itself.
  AttributePath(Meter& meter, const Value* attribute, const Value* otherwise = nullptr);
  Value read(Meter& meter, Value item) const;

 private:
  std::vector<Value> parts_;
  const Value* otherwise_;
};

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

// Strings in lower case, other values unchanged: how sort, unique and others compare by default.
Value ignore_case(Meter& meter, const Value& value) {
  const auto* string = value.get<String>();
  if (string == nullptr) return value;
  return String{change_case(meter, string->text, Case::lower), string->markup};
}

Value length(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "length", arguments, {});
  const auto found = length_of(input);
  if (const Text* text = input.text()) meter.touch(text->size());
  if (!found) refuse(meter, fmt::format("object of type '{}' has no len()", type_name(input)));
  return *found;
}

Value list(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "list", arguments, {});
  return make_sequence(meter, to_vector(meter, input));
}

Value first(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "first", arguments, {});
  Iteration iteration(meter, input);
  auto item = iteration.next(meter);
  return item ? *std::move(item) : undefined("No first item, sequence was empty.");
}

Value last(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "last", arguments, {});
  if (const auto* string = input.get<String>(); string != nullptr && !string->text.empty()) {
    const std::size_t bytes = code_point_before(string->text.view(), string->text.size()).bytes;
    return String{string->text.slice(string->text.size() - bytes, bytes), string->markup};
  }
  if (!length_of(input)) refuse(meter, fmt::format("'{}' object is not reversible", type_name(input)));
  std::vector<Value> items = to_vector(meter, input);
  return items.empty() ? undefined("No last item, sequence was empty.") : std::move(items.back());
}

Value reverse(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "reverse", arguments, {});
  if (input.is_string()) return get_slice(meter, input, None{}, None{}, std::int64_t{-1});
  if (!is_iterable(input)) refuse(meter, "argument must be iterable");
  std::vector<Value> items = to_vector(meter, input);
  std::reverse(items.begin(), items.end());
  // A generator has no reversed(); Jinja2 falls back to a list.
  if (input.shared<Iterator>() != nullptr) return make_sequence(meter, std::move(items));
  const Sequence* sequence = input.sequence();
  const bool is_list = sequence != nullptr && sequence->kind == SequenceKind::list;
  return make_iterator(meter, std::move(items), is_list ? "list_reverseiterator" : "reversed");
}

Value items(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "items", arguments, {});
  std::vector<Value> pairs;
  if (!input.is_undefined()) {
    if (input.dict() == nullptr) refuse(meter, "Can only get item pairs from a mapping.");
    for (const DictEntry& entry : input.dict()->entries) {
      pairs.push_back(make_tuple(meter, {entry.key, entry.value}));
    }
  }
  return make_iterator(meter, std::move(pairs));
}

Value batch(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = given.integer(0, 0);
  if (size > meter.budgets().range) refuse(meter, "batch() asks for rows that are too long");
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : to_vector(meter, input)) {
    if (static_cast<std::int64_t>(row.size()) == size)
      rows.push_back(make_sequence(meter, std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (given[1] != nullptr && !given[1]->is_none()) {
      while (static_cast<std::int64_t>(row.size()) < size) row.push_back(*given[1]);
    }
    rows.push_back(make_sequence(meter, std::move(row)));
  }
  return make_iterator(meter, std::move(rows));
}

Value slice(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "slice", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t slices = given.integer(0, 0);
  if (slices == 0) refuse(meter, "integer division or modulo by zero");
  if (slices > meter.budgets().range) refuse(meter, "slice() asks for too many slices");
  const std::vector<Value> all = to_vector(meter, input);
  const auto count = static_cast<std::int64_t>(all.size());
  std::vector<Value> columns;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const std::int64_t size = count / slices + (i < count % slices ? 1 : 0);
    std::vector<Value> column(all.begin() + at, all.begin() + at + size);
    at += size;
    if (given[1] != nullptr && !given[1]->is_none() && i >= count % slices) column.push_back(*given[1]);
    columns.push_back(make_sequence(meter, std::move(column)));
  }
  return make_iterator(meter, std::move(columns));
}

Value otherwise(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "default", arguments, {"default_value", "boolean"});
  if (!input.is_undefined() && !(given.truth(1, false) && !is_true(input))) return input;
  return given.value(0, Text());
}

Value attribute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "attr", arguments, {"name"}, 1);
  const Text name = to_text(meter, *given[0]);
  // Unlike a dot, attr never reads an entry of a dictionary.
  const bool is_entry = input.dict() != nullptr && find_method(input, name.view()) == nullptr;
  if (!is_entry) return get_attribute(meter, input, name.view());
  return undefined(fmt::format("'dict object' has no attribute '{}'", name.view().substr(0, 200)));
}

Value join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "join", arguments, {"d", "attribute"});
  const Text separator = given[0] == nullptr ? Text() : to_text(meter, *given[0]);
  const AttributePath path(meter, given[1]);
  Iteration iteration(meter, input);
  Text result;
  bool first = true;
  while (auto item = iteration.next(meter)) {
    if (!std::exchange(first, false)) result.append(meter, separator);
    result.append(meter, to_text(meter, path.read(meter, *std::move(item))));
  }
  return result;
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
  // Python keeps the order of equal items when it sorts in descending order, too.
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? compare(meter, CompareOperator::less, b.key, a.key)
                    : compare(meter, CompareOperator::less, a.key, b.key);
  });
}

Value sorted(Meter& meter, std::vector<Keyed> keyed, bool reversed) {
  sort_keyed(meter, keyed, reversed);
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return make_sequence(meter, std::move(items));
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
  return sorted(meter, std::move(keyed), given.truth(0, false));
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
  return sorted(meter, std::move(keyed), given.truth(2, false));
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

constexpr Builtin filters[] = {
    {"length", length},
    {"count", length},
    {"list", list},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"items", items},
    {"batch", batch},
    {"slice", slice},
    {"default", otherwise},
    {"d", otherwise},
    {"attr", attribute},
    {"join", join},
    {"sum", sum},
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

std::span<const Builtin> sequence_filters() {
  return filters;
}

}  // namespace inferno::jinja
