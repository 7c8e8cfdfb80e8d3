// Filters of texts and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

// soft_str(): keeps Markup as it is.
String soft_string(Meter& meter, const Value& value) {
  if (const auto* string = value.get<String>()) return *string;
  return {to_text(meter, value), false};
}

template <Case wanted>
Value cased(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "filter", arguments, {});
  const String string = soft_string(meter, input);
  return String{change_case(meter, string.text, wanted), string.markup};
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
    // Jinja2 splits at [-\s({\[<]+, capitalizes the first character of every piece and lower-cases the rest.
    const bool splits =
        value == U'-' || value == U'(' || value == U'{' || value == U'[' || value == U'<' || is_space(value);
    if (word_starts && !splits) {
      append_upper(out, value);
    } else {
      append_lower(out, value);
    }
    word_starts = splits;
  });
}

// From the parameters ensure_ascii, indent, separators and sort_keys, in this order.
JsonStyle json_style(Meter& meter, const Parameters& given) {
  JsonStyle style;
  style.ensure_ascii = given.truth(0, false);
  style.sort_keys = given.truth(3, false);
  if (given[1] != nullptr && !given[1]->is_none()) {
    constexpr std::int64_t max_indent = 1024;
    const Text* text = given[1]->text();
    const std::int64_t width =
        text != nullptr ? static_cast<std::int64_t>(text->size()) : given.integer(1, 0);
    if (width > max_indent) refuse(meter, "tojson(): 'indent' is longer than 1024 characters");
    style.indent = text != nullptr
                       ? std::string(text->view())
                       : std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    style.item_separator = ",";
  }
  if (given[2] != nullptr && !given[2]->is_none()) {
    const std::vector<Value> pair = to_vector(meter, *given[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      refuse(meter, "tojson(): 'separators' must be a pair of strings");
    }
    style.item_separator = std::string(pair[0].text()->view());
    style.key_separator = std::string(pair[1].text()->view());
  }
  return style;
}

Value dump_json(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  return to_json(meter, input, json_style(meter, given));
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

Text expect_text(Meter& meter, const Value& input, std::string_view filter) {
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  if (!input.is_string()) refuse(meter, fmt::format("{} needs a string, not {}", filter, type_name(input)));
  return *input.text();
}

Value indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "indent", arguments, {"width", "first", "blank"});
  Text text = expect_text(meter, input, "indent");
  text.append(meter, "\n", Origin::trusted);
  const bool named_width = given[0] != nullptr && given[0]->is_string();
  const Text indention = named_width ? *given[0]->text() : pad(meter, Text(), given.integer(0, 4), 0);
  const bool blank = given.truth(2, false);
  Text result = given.truth(1, false) ? indention : Text();
  bool first = true;
  for (const Text& line : split_lines(meter, text, /*keep_ends=*/false)) {
    if (!std::exchange(first, false)) {
      result.append(meter, "\n", Origin::trusted);
      if (blank || !line.empty()) result.append(meter, indention);
    }
    result.append(meter, line);
  }
  return String{std::move(result), input.is_markup()};
}

Value center(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "center", arguments, {"width"});
  const Text text = to_text(meter, input);
  const std::int64_t width = given.integer(0, 80);
  const std::int64_t missing = width - static_cast<std::int64_t>(code_point_count(text.view()));
  if (missing <= 0) return text;
  const std::int64_t left = missing / 2 + (missing & width & 1);
  return pad(meter, text, left, missing - left);
}

Value truncate(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  const Text text = expect_text(meter, input, "truncate");
  const Text end = given[2] == nullptr ? Text::constant("...") : to_text(meter, *given[2]);
  const std::int64_t length = given.integer(0, 255);
  const std::int64_t leeway = given.integer(3, 5);
  const auto end_length = static_cast<std::int64_t>(code_point_count(end.view()));
  if (length < end_length) refuse(meter, fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) refuse(meter, fmt::format("expected leeway >= 0, got {}", leeway));
  const auto count = static_cast<std::int64_t>(code_point_count(text.view()));
  if (count - leeway <= length) return text;
  Text kept = text.slice(0, offset_of(text.view(), static_cast<std::size_t>(length - end_length)));
  if (!given.truth(1, false)) {
    const std::size_t space = kept.view().rfind(' ');
    if (space != std::string_view::npos) kept = kept.slice(0, space);
  }
  kept.append(meter, end);
  return kept;
}

Value word_count(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "wordcount", arguments, {});
  const Text text = to_text(meter, input);
  const std::string_view view = text.view();
  meter.touch(view.size() * 8);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const bool is_word = point.value == U'_' || is_alnum(point.value);
    words += is_word && !inside;
    inside = is_word;
    at += point.bytes;
  }
  return words;
}

Text quote_url(Meter& meter, const Text& text, bool for_query) {
  return map_characters(meter, text, [&](std::string& out, char32_t value, std::string_view as_written) {
    const bool letter =
        value < 0x80 && (is_alnum(value) ||
                         std::string_view("_.-~").find(static_cast<char>(value)) != std::string_view::npos);
    if (letter || (value == U'/' && !for_query)) {
      out += as_written;
    } else if (value == U' ' && for_query) {
      out += '+';
    } else {
      for (const char byte : as_written) out += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
  });
}

Value url_encode(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "urlencode", arguments, {});
  if (input.is_string() || !is_iterable(input)) return quote_url(meter, to_text(meter, input), false);
  std::vector<std::vector<Value>> pairs;
  if (const Dict* dict = input.dict()) {
    for (const DictEntry& entry : dict->entries) pairs.push_back({entry.key, entry.value});
  } else {
    for (const Value& pair : to_vector(meter, input)) pairs.push_back(to_vector(meter, pair));
  }
  Text result;
  for (const auto& pair : pairs) {
    if (pair.size() != 2) refuse(meter, "urlencode needs pairs of a key and a value");
    if (!result.empty()) result.append(meter, "&", Origin::trusted);
    result.append(meter, quote_url(meter, to_text(meter, pair[0]), true));
    result.append(meter, "=", Origin::trusted);
    result.append(meter, quote_url(meter, to_text(meter, pair[1]), true));
  }
  return result;
}

Value xml_attributes(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "xmlattr", arguments, {"autospace"});
  const Dict* dict = input.dict();
  if (dict == nullptr) refuse(meter, fmt::format("xmlattr needs a mapping, not {}", type_name(input)));
  Text result;
  for (const auto& [key, value] : dict->entries) {
    if (value.is_none() || value.is_undefined()) continue;
    const Text name = expect_text(meter, key, "xmlattr");
    if (name.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      refuse(meter, "Invalid character in attribute name");
    }
    if (given.truth(0, true) || !result.empty()) result.append(meter, " ", Origin::trusted);
    result.append(meter, key.is_markup() ? name : escape_html(meter, name));
    result.append(meter, "=\"", Origin::trusted);
    const Text shown = to_text(meter, value);
    result.append(meter, value.is_markup() ? shown : escape_html(meter, shown));
    result.append(meter, "\"", Origin::trusted);
  }
  return result;
}

std::optional<Value> truncated(Meter& meter, double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (!(std::fabs(number) < 9.2e18)) refuse(meter, "the number is beyond 64 bits");
  return static_cast<std::int64_t>(number);
}

Value to_int(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "int", arguments, {"default", "base"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  const Value otherwise = given.value(0, std::int64_t{0});
  if (const auto integer = as_integer(input)) return *integer;
  if (const auto* number = input.get<double>()) {
    if (std::isinf(*number)) refuse(meter, "cannot convert float infinity to integer");
    return truncated(meter, *number).value_or(otherwise);
  }
  const Text* text = input.text();
  if (text == nullptr) return otherwise;
  const std::int64_t base = given.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) refuse(meter, "int() base must be >= 2 and <= 36, or 0");
  bool overflowed = false;
  const auto integer = parse_int(text->view(), static_cast<int>(base), overflowed);
  if (overflowed) refuse(meter, "the number is beyond 64 bits");
  if (integer) return *integer;
  // "42.23"|int is 42.
  const auto number = parse_float(text->view());
  return number ? truncated(meter, *number).value_or(otherwise) : otherwise;
}

Value to_float(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "float", arguments, {"default"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  if (const auto number = as_number(input)) return *number;
  if (const Text* text = input.text()) {
    if (const auto number = parse_float(text->view())) return *number;
  }
  return given.value(0, 0.0);
}

Value absolute(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters none(meter, "abs", arguments, {});
  if (const auto integer = as_integer(input)) {
    if (*integer == INT64_MIN) refuse(meter, "the result is an integer beyond 64 bits");
    return *integer < 0 ? -*integer : *integer;
  }
  if (const auto* number = input.get<double>()) return std::fabs(*number);
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  refuse(meter, fmt::format("bad operand type for abs(): '{}'", type_name(input)));
}

// round() rounds the exact decimal value of the float, half to even.
double round_float(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  if (digits < -300) return std::copysign(0.0, number);
  if (digits >= 0) return *parse_float(fmt::format("{:.{}f}", number, digits));
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / scale) * scale;
}

std::int64_t round_integer(Meter& meter, std::int64_t number, std::int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  std::int64_t scale = 1;
  for (std::int64_t i = digits; i < 0; ++i) scale *= 10;
  std::int64_t rest = number % scale;
  if (rest < 0) rest += scale;
  std::int64_t down = 0;
  if (__builtin_sub_overflow(number, rest, &down)) refuse(meter, "the result is an integer beyond 64 bits");
  const bool up = rest * 2 > scale || (rest * 2 == scale && (down / scale) % 2 != 0);
  if (up && __builtin_add_overflow(down, scale, &down))
    refuse(meter, "the result is an integer beyond 64 bits");
  return down;
}

Value round(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "round", arguments, {"precision", "method"});
  if (const auto* missing = input.get<Undefined>()) refuse_undefined(meter, *missing);
  const auto number = as_number(input);
  if (!number) refuse(meter, fmt::format("type {} doesn't define __round__ method", type_name(input)));
  const std::int64_t precision = given.integer(0, 0);
  const std::string method = given[1] == nullptr ? "common" : std::string(to_text(meter, *given[1]).view());
  if (method == "common") {
    if (const auto integer = as_integer(input)) return round_integer(meter, *integer, precision);
    return round_float(*number, precision);
  }
  if (method != "ceil" && method != "floor") refuse(meter, "method must be common, ceil or floor");
  if (std::llabs(precision) > 300) refuse(meter, "round() asks for too many digits");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *number * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Value file_size(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "filesizeformat", arguments, {"binary"});
  auto bytes = as_number(input);
  if (const Text* text = input.text()) bytes = parse_float(text->view());
  if (!bytes) refuse(meter, "filesizeformat needs a number");
  const bool binary = given.truth(0, false);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return Text::constant("1 Byte");
  if (*bytes < base) return make_text(meter, fmt::format("{} Bytes", static_cast<std::int64_t>(*bytes)));
  constexpr std::array<char, 8> prefixes = {'K', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'};
  double unit = base;
  std::size_t index = 0;
  while (index + 1 < prefixes.size() && *bytes >= unit * base) {
    unit *= base;
    ++index;
  }
  std::string name(1, prefixes[index]);
  if (!binary && index == 0) name = "k";
  return make_text(meter, fmt::format("{:.1f} {}{}", *bytes / unit, name, binary ? "iB" : "B"));
}

constexpr Builtin text_filters[] = {
    {"upper", cased<Case::upper>},
    {"lower", cased<Case::lower>},
    {"capitalize", cased<Case::capital>},
    {"title", title},
    {"trim", trim},
    {"replace", replace},
    {"string", string},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"tojson", dump_json},
    {"format", format},
    {"indent", indent},
    {"center", center},
    {"truncate", truncate},
    {"wordcount", word_count},
    {"urlencode", url_encode},
    {"xmlattr", xml_attributes},
    {"int", to_int},
    {"float", to_float},
    {"abs", absolute},
    {"round", round},
    {"filesizeformat", file_size},
};

}  // namespace

FilterFunction find_filter(std::string_view name) {
  const FilterFunction found = find_builtin(text_filters, name);
  return found != nullptr ? found : find_builtin(sequence_filters(), name);
}

}  // namespace inferno::jinja
