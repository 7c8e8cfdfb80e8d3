// Filters from text to text.
#include <fmt/format.h>

#include "chat/jinja/filter_tables.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/json_writer.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/string_functions.h"

namespace inferno::jinja {
namespace {

// soft_str(): keeps Markup as it is.
String soft_string(Meter& meter, const Value& value) {
  if (const auto* string = value.get<String>()) return *string;
  return {to_text(meter, value), false};
}

template <Text (*change)(Meter&, const Text&)>
Value changed(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "filter", arguments, {});
  const String string = soft_string(meter, input);
  return String{change(meter, string.text), string.markup};
}

Value trim(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "trim", arguments, {"chars"});
  const String string = soft_string(meter, input);
  return String{strip(meter, string.text, given.text(0), Side::both), string.markup};
}

Value replace(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "replace", arguments, {"old", "new", "count"}, 2);
  const Text old_text = to_text(meter, *given[0]);
  const Text new_text = to_text(meter, *given[1]);
  return replace_text(meter, to_text(meter, input), old_text, new_text, given.integer(2, -1));
}

Value string(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "string", arguments, {});
  return soft_string(interpreter.meter(), input);
}

Value safe(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "safe", arguments, {});
  return String{to_text(interpreter.meter(), input), true};
}

Value escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "escape", arguments, {});
  if (input.is_markup()) return input;
  return String{escape_html(meter, to_text(meter, input)), true};
}

Value force_escape(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "forceescape", arguments, {});
  return String{escape_html(meter, to_text(meter, input)), true};
}

Value title(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "title", arguments, {});
  bool word_starts = true;
  const Text text = to_text(meter, input);
  return map_characters(meter, text, [&](std::string& out, char32_t value, std::string_view) {
    // Jinja2 cuts at [-\s({\[<]+ and turns the first character of every piece up, the rest down.
    const bool cuts =
        value == U'-' || value == U'(' || value == U'{' || value == U'[' || value == U'<' || is_space(value);
    if (word_starts && !cuts) {
      append_upper(out, value);
    } else {
      append_lower(out, value);
    }
    word_starts = cuts;
  });
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

Value to_json(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  return write_json(meter, input, json_style(meter, given));
}

Value format(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const String string = soft_string(meter, input);
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    refuse(meter, "can't handle positional and keyword arguments at the same time");
  }
  if (arguments.named.empty()) return format_percent(meter, string, make_tuple(meter, arguments.positional));
  std::vector<DictEntry> entries;
  for (const auto& [name, value] : arguments.named) entries.push_back({make_text(meter, name), value});
  return format_percent(meter, string, make_dict(meter, std::move(entries)));
}

Text upper_text(Meter& meter, const Text& text) {
  return change_case(meter, text, Case::upper);
}
Text lower_text(Meter& meter, const Text& text) {
  return change_case(meter, text, Case::lower);
}
Text capital_text(Meter& meter, const Text& text) {
  return change_case(meter, text, Case::capital);
}

constexpr FilterEntry entries[] = {
    {"upper", changed<upper_text>},
    {"lower", changed<lower_text>},
    {"capitalize", changed<capital_text>},
    {"title", title},
    {"trim", trim},
    {"replace", replace},
    {"string", string},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"join", join},
    {"tojson", to_json},
    {"format", format},
};

}  // namespace

std::span<const FilterEntry> text_filters() {
  return entries;
}

}  // namespace inferno::jinja
