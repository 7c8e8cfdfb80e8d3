// Functions a template may call without defining them.
#include <fmt/format.h>

#include "base/error.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/strftime.h"

namespace inferno::jinja {
namespace {

Value raise_exception(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "raise_exception", arguments, {"message"}, 1);
  const Text message = to_text(meter, *given[0]);
  fail(ErrorKind::unsupported,
       fmt::format("{}, line {}: {}", meter.template_name(), meter.line(), message.view()),
       {.why = "the chat template of this model refuses the conversation", .next = {}});
}

Value strftime_now(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "strftime_now", arguments, {"format"}, 1);
  const Text* format = given.text(0);
  if (format == nullptr) refuse(meter, "strftime_now() needs a format");
  constexpr std::size_t longest_format = 4096;
  if (format->size() > longest_format) refuse(meter, "strftime_now() got a format beyond 4096 bytes");
  std::string problem;
  const auto text = format_time(interpreter.now(), format->view(), problem);
  if (!text) refuse(meter, problem);
  return make_text(meter, *text, format->has_user_bytes() ? Origin::user : Origin::trusted);
}

Value range(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  if (arguments.positional.empty() || !arguments.named.empty()) {
    refuse(meter, "range() takes one to three positional arguments");
  }
  const Parameters given(meter, "range", arguments, {"start", "stop", "step"}, 1);
  const auto number = [&](std::size_t index) { return to_index(meter, *given[index], "range()"); };
  Range result{0, 0, 1};
  if (given[1] == nullptr) {
    result.stop = number(0);
  } else {
    result.start = number(0);
    result.stop = number(1);
    if (given[2] != nullptr) result.step = number(2);
  }
  if (result.step == 0) refuse(meter, "range() arg 3 must not be zero");
  if (result.size() > meter.budgets().range) {
    refuse(meter, fmt::format("the template exceeds its ranges of {} items", meter.budgets().range));
  }
  return std::make_shared<const Range>(result);
}

// dict(mapping_or_pairs, **more)
std::vector<DictEntry> dict_entries(Interpreter& interpreter, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  std::vector<DictEntry> entries;
  if (arguments.positional.size() > 1) refuse(meter, "dict expected at most 1 argument");
  for (const Value& source : arguments.positional) {
    if (source.dict() != nullptr) {
      entries = source.dict()->entries;
      continue;
    }
    for (const Value& pair : to_vector(meter, source)) {
      std::vector<Value> parts = to_vector(meter, pair);
      if (parts.size() != 2 || !is_hashable(parts[0])) refuse(meter, "dict() needs pairs with hashable keys");
      entries.push_back({std::move(parts[0]), std::move(parts[1])});
    }
  }
  for (const auto& [name, value] : arguments.named) entries.push_back({make_text(meter, name), value});
  return entries;
}

Value dict(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  return make_dict(interpreter.meter(), dict_entries(interpreter, arguments));
}

Value make_space(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Value initial = make_dict(meter, dict_entries(interpreter, arguments));
  std::vector<std::pair<std::string, Value>> attributes;
  for (const DictEntry& entry : initial.dict()->entries) {
    if (!entry.key.is_string()) continue;  // such a key can never be read as an attribute
    attributes.emplace_back(std::string(entry.key.text()->view()), entry.value);
  }
  return interpreter.make_namespace(std::move(attributes));
}

Value cycler(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  if (arguments.positional.empty() || !arguments.named.empty())
    refuse(meter, "cycler() needs at least one item");
  const Value items = make_tuple(meter, arguments.positional);
  return std::make_shared<Cycler>(
      Cycler{.items = *items.get<std::shared_ptr<const Sequence>>(), .position = 0});
}

Value joiner(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "joiner", arguments, {"sep"});
  Value separator = given.value(0, Text::constant(", "));
  meter.check_depth(depth_of(separator), "nested values");
  return std::make_shared<Joiner>(Joiner{.separator = std::move(separator), .used = false});
}

struct GlobalEntry {
  std::string_view name;
  Callable::Function function;
};

constexpr GlobalEntry globals[] = {
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"range", range},
    {"dict", dict},
    {"namespace", make_space},
    {"cycler", cycler},
    {"joiner", joiner},
};

}  // namespace

Callable::Function find_global(std::string_view name) {
  for (const GlobalEntry& entry : globals) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace inferno::jinja
