// Methods of dict, list, tuple, loop and cycler; and the table that finds any method.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/method_tables.h"

namespace inferno::jinja {
namespace {

Value get(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
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

Value count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "count", arguments, {"value"}, 1);
  std::int64_t found = 0;
  for (const Value& item : self.sequence()->items) found += equals(meter, item, *given[0]);
  return found;
}

Value index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
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

constexpr MethodEntry dict_methods[] = {
    {"get", get},
    {"items", view<DictViewKind::items>},
    {"keys", view<DictViewKind::keys>},
    {"values", view<DictViewKind::values>},
    {"copy", copy},
};
constexpr MethodEntry list_methods[] = {{"count", count}, {"index", index}, {"copy", copy}};
constexpr MethodEntry tuple_methods[] = {{"count", count}, {"index", index}};
constexpr MethodEntry loop_methods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};
constexpr MethodEntry cycler_methods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

constexpr std::string_view forbidden_in_dicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view forbidden_in_lists[] = {"append", "clear", "pop",    "reverse",
                                                   "insert", "sort",  "extend", "remove"};

constexpr std::string_view unsupported_in_strings[] = {"encode", "format_map", "maketrans", "translate"};

Callable::Function find_in(std::span<const MethodEntry> table, std::string_view name) {
  for (const MethodEntry& entry : table) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace

Callable::Function find_method(const Value& self, std::string_view name) {
  if (self.is_string()) {
    const auto found = find_in(string_methods(), name);
    return found != nullptr ? found : find_in(string_question_methods(), name);
  }
  if (self.dict() != nullptr) return find_in(dict_methods, name);
  if (const Sequence* sequence = self.sequence()) {
    if (sequence->kind == SequenceKind::list) return find_in(list_methods, name);
    return find_in(tuple_methods, name);
  }
  if (self.shared<LoopState>() != nullptr) return find_in(loop_methods, name);
  if (self.shared<Cycler>() != nullptr) return find_in(cycler_methods, name);
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
