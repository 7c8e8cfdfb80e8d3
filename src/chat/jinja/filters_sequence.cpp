// Filters that take sequences apart and put them together.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/filter_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/string_functions.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

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
  // reversed() of a generator is no iterator but a list: Jinja2 falls back to one.
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
  // Unlike a dot, attr never reads a dictionary's entry.
  const bool is_entry = input.dict() != nullptr && find_method(input, name.view()) == nullptr;
  if (!is_entry) return get_attribute(meter, input, name.view());
  return undefined(fmt::format("'dict object' has no attribute '{}'", name.view().substr(0, 200)));
}

constexpr FilterEntry entries[] = {
    {"length", length}, {"count", length},      {"list", list},   {"first", first},
    {"last", last},     {"reverse", reverse},   {"items", items}, {"batch", batch},
    {"slice", slice},   {"default", otherwise}, {"d", otherwise}, {"attr", attribute},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  return entries;
}

}  // namespace inferno::jinja
