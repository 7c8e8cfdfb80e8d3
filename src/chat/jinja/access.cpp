// Attributes, subscripts, slices and iteration.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

// "dict object", as Jinja2 describes the owner of a missing attribute.
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
    return Value(Text::constant(macro->macro->name));
  }
  return std::nullopt;
}

// What Python's getattr would find, with the sandbox's refusals.
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
    return string->text.slice(at_ - bytes, bytes);  // going through Markup gives plain strings
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
  // Counted while it grows: a string of megabytes becomes a list of megabytes of values.
  HeapCharge charge(&meter, 0);
  while (auto item = iteration.next(meter)) {
    if (items.size() == items.capacity()) charge.resize(2 * (items.size() + 1) * sizeof(Value));
    items.push_back(*std::move(item));
  }
  return items;
}

}  // namespace inferno::jinja
