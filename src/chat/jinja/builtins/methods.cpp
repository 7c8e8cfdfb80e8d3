// Methods of str, dict, list, tuple, loop and cycler.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

Value as_self(const Value& self, Text text) {
  return String{std::move(text), self.is_markup()};
}

Value list_of(Meter& meter, const Value& self, std::vector<Text> parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (Text& part : parts) items.push_back(as_self(self, std::move(part)));
  return make_sequence(meter, std::move(items));
}

template <Case wanted>
Value cased(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "str method", arguments, {});
  return as_self(self, change_case(interpreter.meter(), *self.text(), wanted));
}

template <Side side>
Value stripped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "strip", arguments, {"chars"});
  return as_self(self, strip(interpreter.meter(), *self.text(), given.text(0), side));
}

template <bool from_right>
Value split_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "split", arguments, {"sep", "maxsplit"});
  const Text* separator = given.text(0);
  if (separator != nullptr && separator->empty()) refuse(meter, "empty separator");
  const std::int64_t limit = given.integer(1, -1);
  return list_of(meter, self,
                 from_right ? split_from_right(meter, *self.text(), separator, limit)
                            : split(meter, *self.text(), separator, limit));
}

Value split_lines_method(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "splitlines", arguments, {"keepends"});
  return list_of(meter, self, split_lines(meter, *self.text(), given.truth(0, false)));
}

template <bool from_right>
Value partition(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "partition", arguments, {"sep"}, 1);
  const Text* separator = given.text(0);
  if (separator == nullptr || separator->empty()) refuse(meter, "empty separator");
  const Text& text = *self.text();
  meter.touch(text.size());
  const std::size_t found = from_right ? find_last_text(text.view(), separator->view())
                                       : find_text(text.view(), separator->view(), 0);
  if (found == std::string_view::npos) {
    if (from_right) return make_tuple(meter, {as_self(self, {}), as_self(self, {}), self});
    return make_tuple(meter, {self, as_self(self, {}), as_self(self, {})});
  }
  const std::size_t after = found + separator->size();
  return make_tuple(meter,
                    {as_self(self, text.slice(0, found)), as_self(self, text.slice(found, after - found)),
                     as_self(self, text.slice(after, text.size() - after))});
}

// The part of the text between the start and end arguments of find(), count() and similar methods.
struct Window {
  std::string_view view;
  std::size_t offset;  // in bytes
  bool valid;
};

Window window_of(Meter& meter, const Text& text, const Parameters& given) {
  const std::string_view view = text.view();
  meter.touch(view.size());
  if (given[1] == nullptr && given[2] == nullptr) return {view, 0, true};
  const auto size = static_cast<std::int64_t>(code_point_count(view));
  const auto bound = [&](std::size_t index, std::int64_t otherwise) {
    const std::int64_t at = given.integer(index, otherwise);
    return at < 0 ? std::max<std::int64_t>(0, at + size) : at;
  };
  const std::int64_t start = bound(1, 0);
  const std::int64_t stop = std::min(bound(2, size), size);
  if (start > size || start > stop) return {{}, 0, false};
  const std::size_t from = offset_of(view, static_cast<std::size_t>(start));
  const std::size_t to = offset_of(view, static_cast<std::size_t>(stop));
  return {view.substr(from, to - from), from, true};
}

template <bool last, bool must_exist>
Value find_method_of(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "find", arguments, {"sub", "start", "end"}, 1);
  const Text* wanted = given.text(0);
  if (wanted == nullptr) refuse(meter, "must be str, not NoneType");
  const Window window = window_of(meter, *self.text(), given);
  const std::size_t found = !window.valid ? std::string_view::npos
                            : last        ? find_last_text(window.view, wanted->view())
                                          : find_text(window.view, wanted->view(), 0);
  if (found == std::string_view::npos) {
    if (must_exist) refuse(meter, "substring not found");
    return std::int64_t{-1};
  }
  return static_cast<std::int64_t>(code_point_count(self.text()->view().substr(0, window.offset + found)));
}

Value count_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "count", arguments, {"sub", "start", "end"}, 1);
  const Text* wanted = given.text(0);
  if (wanted == nullptr) refuse(meter, "must be str, not NoneType");
  const Window window = window_of(meter, *self.text(), given);
  if (!window.valid) return std::int64_t{0};
  if (wanted->empty()) return static_cast<std::int64_t>(code_point_count(window.view)) + 1;
  std::int64_t found = 0;
  for (std::size_t at = find_text(window.view, wanted->view(), 0); at != std::string_view::npos;
       at = find_text(window.view, wanted->view(), at + wanted->size())) {
    meter.step();
    ++found;
  }
  return found;
}

template <bool at_end>
Value affixed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, at_end ? "endswith" : "startswith", arguments, {"prefix", "start", "end"}, 1);
  const Window window = window_of(meter, *self.text(), given);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      refuse(meter, fmt::format("{} first arg must be str or a tuple of str, not {}",
                                at_end ? "endswith" : "startswith", type_name(affix)));
    }
    const std::string_view text = affix.text()->view();
    return window.valid && (at_end ? window.view.ends_with(text) : window.view.starts_with(text));
  };
  const Sequence* tuple = given[0]->sequence();
  if (tuple == nullptr || tuple->kind == SequenceKind::list) return matches(*given[0]);
  return std::any_of(tuple->items.begin(), tuple->items.end(), matches);
}

Value replace(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "replace", arguments, {"old", "new", "count"}, 2);
  const Text* old_text = given.text(0);
  const Text* new_text = given.text(1);
  if (old_text == nullptr || new_text == nullptr)
    refuse(meter, "replace() arguments must be str, not NoneType");
  const bool escapes = self.is_markup() && !given[1]->is_markup();
  const Text replacement = escapes ? escape_html(meter, *new_text) : *new_text;
  return as_self(self, replace_text(meter, *self.text(), *old_text, replacement, given.integer(2, -1)));
}

Value join(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "join", arguments, {"iterable"}, 1);
  Iteration iteration(meter, *given[0]);
  Text result;
  std::int64_t index = 0;
  while (const auto item = iteration.next(meter)) {
    if (!item->is_string()) {
      refuse(meter,
             fmt::format("sequence item {}: expected str instance, {} found", index, type_name(*item)));
    }
    if (index++ > 0) result.append(meter, *self.text());
    const bool escapes = self.is_markup() && !item->is_markup();
    result.append(meter, escapes ? escape_html(meter, *item->text()) : *item->text());
  }
  return as_self(self, std::move(result));
}

Value remove_prefix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "removeprefix", arguments, {"prefix"}, 1);
  const Text& text = *self.text();
  const Text* prefix = given.text(0);
  if (prefix == nullptr || !text.view().starts_with(prefix->view())) return self;
  return as_self(self, text.slice(prefix->size(), text.size() - prefix->size()));
}

Value remove_suffix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "removesuffix", arguments, {"suffix"}, 1);
  const Text& text = *self.text();
  const Text* suffix = given.text(0);
  if (suffix == nullptr || suffix->empty() || !text.view().ends_with(suffix->view())) return self;
  return as_self(self, text.slice(0, text.size() - suffix->size()));
}

enum class Place { left, center, right };

template <Place place>
Value justified(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "justify", arguments, {"width", "fillchar"}, 1);
  const std::int64_t width = given.integer(0, 0);
  const Text* fill = given.text(1);
  if (fill != nullptr && code_point_count(fill->view()) != 1) {
    refuse(meter, "The fill character must be exactly one character long");
  }
  const std::int64_t missing = width - static_cast<std::int64_t>(code_point_count(self.text()->view()));
  if (missing <= 0) return self;
  std::int64_t left = 0;
  if (place == Place::right) left = missing;
  if (place == Place::center) left = missing / 2 + (missing & width & 1);
  return as_self(self, pad(meter, *self.text(), left, missing - left, fill == nullptr ? " " : fill->view()));
}

Value fill_zeros(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "zfill", arguments, {"width"}, 1);
  const Text& text = *self.text();
  const std::int64_t missing = given.integer(0, 0) - static_cast<std::int64_t>(code_point_count(text.view()));
  if (missing <= 0) return self;
  const bool is_signed = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  Text result = text.slice(0, is_signed ? 1 : 0);
  const std::size_t from = is_signed ? 1 : 0;
  result.append(meter, pad(meter, text.slice(from, text.size() - from), missing, 0, "0"));
  return as_self(self, std::move(result));
}

Value expanded(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "expandtabs", arguments, {"tabsize"});
  constexpr std::int64_t max_tab = 1024;
  const std::int64_t size = given.integer(0, 8);
  if (size > max_tab) refuse(meter, "expandtabs(): tabsize is larger than 1024");
  return as_self(self, expand_tabs(meter, *self.text(), size));
}

Value format(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return format_braces(interpreter.meter(), *self.get<String>(), arguments);
}

using Question = bool (*)(char32_t);

// Whether every character satisfies it; the empty string gets `when_empty`.
template <Question question, bool when_empty = false>
Value all(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "str method", arguments, {});
  const std::string_view view = self.text()->view();
  meter.touch(view.size() * 8);
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    if (!question(point.value)) return false;
    at += point.bytes;
  }
  return !view.empty() || when_empty;
}

template <auto test_name>
Value by_test(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return find_test(test_name())(interpreter, self, arguments);
}

bool is_ascii(char32_t value) {
  return value < 0x80;
}

Value is_identifier(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "isidentifier", arguments, {});
  const std::string_view view = self.text()->view();
  interpreter.meter().touch(view.size() * 8);
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const bool fits = point.value == U'_' || is_alpha(point.value) || (at > 0 && is_alnum(point.value));
    if (!fits) return false;
    at += point.bytes;
  }
  return !view.empty();
}

// Upper case only after uncased characters, lower case only after cased ones.
Value is_titled(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "istitle", arguments, {});
  const std::string_view view = self.text()->view();
  interpreter.meter().touch(view.size() * 8);
  bool any = false;
  bool after_cased = false;
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const bool high = is_upper(point.value) || is_title(point.value);
    const bool low = is_lower(point.value);
    if ((high && after_cased) || (low && !after_cased)) return false;
    any = any || high || low;
    after_cased = high || low;
    at += point.bytes;
  }
  return any;
}

Value get_entry(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  if (!arguments.named.empty()) refuse(meter, "dict.get() takes no keyword arguments");
  const Parameters given(meter, "get", arguments, {"key", "default"}, 1);
  if (!is_hashable(*given[0])) refuse(meter, fmt::format("unhashable type: '{}'", type_name(*given[0])));
  const Value* found = self.dict()->find(*given[0]);
  return found != nullptr ? *found : given.value(1, None{});
}

template <DictViewKind kind>
Value view(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "dict method", arguments, {});
  return std::make_shared<const DictView>(
      DictView{.dict = *self.get<std::shared_ptr<const Dict>>(), .kind = kind});
}

Value copy(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "copy", arguments, {});
  return self;
}

Value count_items(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "count", arguments, {"value"}, 1);
  std::int64_t found = 0;
  for (const Value& item : self.sequence()->items) found += equals(meter, item, *given[0]);
  return found;
}

Value index_of_item(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "index", arguments, {"value", "start", "stop"}, 1);
  const auto& items = self.sequence()->items;
  const auto size = static_cast<std::int64_t>(items.size());
  const auto bound = [&](std::size_t at, std::int64_t otherwise) {
    const std::int64_t given_bound = given.integer(at, otherwise);
    return given_bound < 0 ? std::max<std::int64_t>(0, given_bound + size) : std::min(given_bound, size);
  };
  const std::int64_t stop = bound(2, size);
  for (std::int64_t i = bound(1, 0); i < stop; ++i) {
    if (equals(meter, items[static_cast<std::size_t>(i)], *given[0])) return i;
  }
  refuse(meter, "the value is not in the list");
}

Value loop_cycle(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) refuse(interpreter.meter(), "no items for cycling given");
  const auto count = static_cast<std::int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>(self.shared<LoopState>()->index0 % count)];
}

Value loop_changed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  auto* loop = self.shared<LoopState>();
  Value now = make_tuple(meter, arguments.positional);
  const bool changed = !loop->has_changed_before || !equals(meter, loop->last_changed, now);
  loop->has_changed_before = true;
  loop->value_depth = std::max(loop->value_depth, depth_of(now));
  loop->last_changed = std::move(now);
  return changed;
}

Value cycler_next(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "next", arguments, {});
  auto* cycler = self.shared<Cycler>();
  const Value& item = cycler->items->items[cycler->position];
  cycler->position = (cycler->position + 1) % cycler->items->items.size();
  return item;
}

Value cycler_reset(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "reset", arguments, {});
  self.shared<Cycler>()->position = 0;
  return None{};
}

constexpr Builtin string_methods[] = {
    {"upper", cased<Case::upper>},
    {"lower", cased<Case::lower>},
    {"capitalize", cased<Case::capital>},
    {"title", cased<Case::title>},
    {"swapcase", cased<Case::swapped>},
    {"casefold", cased<Case::folded>},
    {"strip", stripped<Side::both>},
    {"lstrip", stripped<Side::left>},
    {"rstrip", stripped<Side::right>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", split_lines_method},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"find", find_method_of<false, false>},
    {"rfind", find_method_of<true, false>},
    {"index", find_method_of<false, true>},
    {"rindex", find_method_of<true, true>},
    {"count", count_text},
    {"startswith", affixed<false>},
    {"endswith", affixed<true>},
    {"replace", replace},
    {"join", join},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"ljust", justified<Place::left>},
    {"center", justified<Place::center>},
    {"rjust", justified<Place::right>},
    {"zfill", fill_zeros},
    {"expandtabs", expanded},
    {"format", format},
    {"isdigit", all<is_digit>},
    {"isdecimal", all<is_decimal>},
    {"isnumeric", all<is_numeric>},
    {"isalpha", all<is_alpha>},
    {"isalnum", all<is_alnum>},
    {"isspace", all<is_space>},
    {"isprintable", all<is_printable, true>},
    {"isascii", all<is_ascii, true>},
    {"isidentifier", is_identifier},
    {"islower", by_test<[] { return "lower"; }>},
    {"isupper", by_test<[] { return "upper"; }>},
    {"istitle", is_titled},
};
constexpr Builtin dict_methods[] = {
    {"get", get_entry},
    {"items", view<DictViewKind::items>},
    {"keys", view<DictViewKind::keys>},
    {"values", view<DictViewKind::values>},
    {"copy", copy},
};
constexpr Builtin list_methods[] = {{"count", count_items}, {"index", index_of_item}, {"copy", copy}};
constexpr Builtin tuple_methods[] = {{"count", count_items}, {"index", index_of_item}};
constexpr Builtin loop_methods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};
constexpr Builtin cycler_methods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

constexpr std::string_view forbidden_in_dicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view forbidden_in_lists[] = {"append", "clear", "pop",    "reverse",
                                                   "insert", "sort",  "extend", "remove"};

constexpr std::string_view unsupported_in_strings[] = {"encode", "format_map", "maketrans", "translate"};

}  // namespace

Callable::Function find_method(const Value& self, std::string_view name) {
  if (self.is_string()) return find_builtin(string_methods, name);
  if (self.dict() != nullptr) return find_builtin(dict_methods, name);
  if (const Sequence* sequence = self.sequence()) {
    if (sequence->kind == SequenceKind::list) return find_builtin(list_methods, name);
    return find_builtin(tuple_methods, name);
  }
  if (self.shared<LoopState>() != nullptr) return find_builtin(loop_methods, name);
  if (self.shared<Cycler>() != nullptr) return find_builtin(cycler_methods, name);
  return nullptr;
}

bool is_unsupported_method(const Value& self, std::string_view name) {
  if (self.dict() != nullptr) return name == "fromkeys";
  if (!self.is_string()) return false;
  const auto& names = unsupported_in_strings;
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_forbidden_method(const Value& self, std::string_view name) {
  const auto has = [&](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (self.dict() != nullptr) return has(forbidden_in_dicts);
  const Sequence* sequence = self.sequence();
  return sequence != nullptr && sequence->kind == SequenceKind::list && has(forbidden_in_lists);
}

}  // namespace inferno::jinja
