// Filters that lay text out: indent, center, truncate, wrap, count, encode.
#include <fmt/format.h>

#include "chat/jinja/filter_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/string_functions.h"

namespace inferno::jinja {
namespace {

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

constexpr FilterEntry entries[] = {
    {"indent", indent},        {"center", center},        {"truncate", truncate},
    {"wordcount", word_count}, {"urlencode", url_encode}, {"xmlattr", xml_attributes},
};

}  // namespace

std::span<const FilterEntry> layout_filters() {
  return entries;
}

}  // namespace inferno::jinja
