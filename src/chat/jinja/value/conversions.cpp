// Values to text: str() and repr(), json.dumps() as Python writes it, and HTML escaping. Numbers from text:
// float() and int().
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

std::string_view strip_spaces(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = code_point_at(text, 0);
    if (!is_space(point.value)) break;
    text.remove_prefix(point.bytes);
  }
  while (!text.empty()) {
    const CodePoint point = code_point_before(text, text.size());
    if (!is_space(point.value)) break;
    text.remove_suffix(point.bytes);
  }
  return text;
}

// Python reads the decimal digits of every script.
std::string ascii_digits(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value >= 0x80 && is_decimal(point.value)) {
      plain += static_cast<char>('0' + decimal_value(point.value));
    } else {
      plain += text.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return plain;
}

// Python allows single underscores between digits. nullopt if there is one elsewhere.
std::optional<std::string> drop_underscores(std::string_view text) {
  const auto is_digit_char = [](char letter) {
    return (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
  };
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit_char(text[i - 1]) && is_digit_char(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return digits;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

bool looks_decimal(std::string_view text) {
  bool digits = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter >= '0' && letter <= '9') {
      digits = true;
    } else if (letter == '+' || letter == '-') {
      if (i == 0 || (text[i - 1] | 0x20) != 'e') return false;
    } else if (letter != '.' && (letter | 0x20) != 'e') {
      return false;
    }
  }
  return digits;
}

// A decimal number without sign or spaces; infinity if it is too large, zero if too small.
double parse_decimal(std::string_view digits) {
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  // from_chars does not set the value, so the exponent's sign tells overflow from underflow.
  const std::size_t exponent = digits.find_first_of("eE");
  const bool tiny = exponent == std::string_view::npos
                        ? digits.find_first_of("123456789") > digits.find('.')
                        : exponent + 1 < digits.size() && digits[exponent + 1] == '-';
  return tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  // Python uses an exponent below 1e-4 and from 1e16 on; to_chars would choose the shorter form.
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits, digits + sizeof digits, value, format).ptr;
  std::string text(digits, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  const auto cleaned = drop_underscores(ascii_digits(strip_spaces(text)));
  if (!cleaned || cleaned->empty()) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  const double sign = negative ? -1.0 : 1.0;
  if (equals_ignoring_case(digits, "inf") || equals_ignoring_case(digits, "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (equals_ignoring_case(digits, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (!looks_decimal(digits)) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  return sign * parse_decimal(digits);
}

std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflowed) {
  overflowed = false;
  const auto cleaned = drop_underscores(ascii_digits(strip_spaces(text)));
  if (!cleaned || cleaned->empty()) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    const int prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefix != 0 && (base == prefix || base == 0)) {
      digits.remove_prefix(2);
      base = prefix;
    }
  }
  if (base == 0) base = 10;
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
  const std::string spelled = (negative ? "-" : "") + std::string(digits);
  std::int64_t value = 0;
  const auto result = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value, base);
  if (result.ptr != spelled.data() + spelled.size()) return std::nullopt;
  overflowed = result.ec == std::errc::result_out_of_range;
  if (result.ec != std::errc() && !overflowed) return std::nullopt;
  return value;
}

namespace {

// The backslash escapes that repr() and JSON have in common; empty for all other characters.
std::string_view common_escape(char32_t value) {
  switch (value) {
    case U'\\': return "\\\\";
    case U'\n': return "\\n";
    case U'\r': return "\\r";
    case U'\t': return "\\t";
    default: return {};
  }
}

std::string_view html_escape(char32_t value) {
  switch (value) {
    case U'&': return "&amp;";
    case U'<': return "&lt;";
    case U'>': return "&gt;";
    case U'\'': return "&#39;";
    case U'"': return "&#34;";
    default: return {};
  }
}

void append_repr_character(std::string& out, char32_t value, std::string_view as_written, char quote) {
  const auto code = static_cast<std::uint32_t>(value);
  if (const std::string_view escape = common_escape(value); !escape.empty()) {
    out += escape;
  } else if (value == static_cast<char32_t>(quote)) {
    out += '\\';
    out += quote;
  } else if (is_printable(value)) {
    out += as_written;
  } else if (code < 0x100) {
    out += fmt::format("\\x{:02x}", code);
  } else if (code < 0x10000) {
    out += fmt::format("\\u{:04x}", code);
  } else {
    out += fmt::format("\\U{:08x}", code);
  }
}

void append_json_character(std::string& out, char32_t value, std::string_view as_written, bool ascii) {
  const auto code = static_cast<std::uint32_t>(value);
  if (const std::string_view escape = common_escape(value); !escape.empty()) {
    out += escape;
  } else if (value == U'"') {
    out += "\\\"";
  } else if (value == U'\b') {
    out += "\\b";
  } else if (value == U'\f') {
    out += "\\f";
  } else if (code < 0x20 || (ascii && code >= 0x7F && code < 0x10000)) {
    out += fmt::format("\\u{:04x}", code);
  } else if (ascii && code >= 0x10000) {
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                       0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    out += as_written;
  }
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return format_float(value);
}

// The text that both writers build. Punctuation counts as the template's.
class Output {
 public:
  explicit Output(Meter& meter) : meter_(meter) {}

  void put(std::string_view text) { text_.append(meter_, text, Origin::trusted); }
  // append(std::string& out, char32_t value, std::string_view as_written) escapes one character.
  template <class Append>
  void put_quoted(std::string_view quote, const Text& text, Append&& append) {
    put(quote);
    text_.append(meter_, map_characters(meter_, text, append));
    put(quote);
  }
  // Calls write(item) for each item, with separators in between.
  template <class Items, class Write>
  void put_list(const Items& items, std::string_view separator, Write&& write) {
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) put(separator);
      write(item);
    }
  }
  Text take() { return std::move(text_); }

 private:
  Meter& meter_;
  Text text_;
};

class ReprWriter {
 public:
  explicit ReprWriter(Meter& meter) : meter_(meter), out_(meter) {}

  void write(const Value& value) {
    meter_.step();
    if (value.is_undefined()) return out_.put("Undefined");
    if (value.is_none()) return out_.put("None");
    if (const auto* flag = value.get<bool>()) return out_.put(*flag ? "True" : "False");
    if (const auto* integer = value.get<std::int64_t>()) return out_.put(std::to_string(*integer));
    if (const auto* number = value.get<double>()) return out_.put(format_float(*number));
    if (const auto* string = value.get<String>()) return write_string(*string);
    meter_.check_depth(++depth_, "printed values");
    write_object(value);
    --depth_;
  }
  Text take() { return out_.take(); }

 private:
  void write_string(const String& string) {
    const std::string_view view = string.text.view();
    const bool has_single = view.find('\'') != std::string_view::npos;
    const char quote = has_single && view.find('"') == std::string_view::npos ? '"' : '\'';
    if (string.markup) out_.put("Markup(");
    out_.put_quoted(std::string_view(&quote, 1), string.text,
                    [&](std::string& to, char32_t value, std::string_view as_written) {
                      append_repr_character(to, value, as_written, quote);
                    });
    if (string.markup) out_.put(")");
  }

  void write_items(const std::vector<Value>& items) {
    out_.put_list(items, ", ", [this](const Value& item) { write(item); });
  }

  void write_entry(const Value& key, const Value& value) {
    write(key);
    out_.put(": ");
    write(value);
  }

  void write_dict(const Dict& dict) {
    out_.put("{");
    out_.put_list(dict.entries, ", ",
                  [this](const DictEntry& entry) { write_entry(entry.key, entry.value); });
    out_.put("}");
  }

  void write_namespace(const Namespace& space) {
    out_.put("<Namespace {");
    out_.put_list(space.attributes, ", ", [this](const auto& attribute) {
      write_entry(Text::constant(attribute.first), attribute.second);
    });
    out_.put("}>");
  }

  void write_sequence(const Sequence& sequence) {
    const bool list = sequence.kind == SequenceKind::list;
    out_.put(list ? "[" : "(");
    write_items(sequence.items);
    out_.put(list ? "]" : sequence.items.size() == 1 ? ",)" : ")");
  }

  void write_object(const Value& value) {
    if (const Sequence* sequence = value.sequence()) return write_sequence(*sequence);
    if (const Dict* dict = value.dict()) return write_dict(*dict);
    if (const auto* space = value.shared<Namespace>()) return write_namespace(*space);
    if (const auto* range = value.shared<const Range>()) {
      const std::string step = range->step == 1 ? "" : fmt::format(", {}", range->step);
      return out_.put(fmt::format("range({}, {}{})", range->start, range->stop, step));
    }
    if (value.shared<const DictView>() != nullptr) {
      out_.put(type_name(value));
      out_.put("([");
      write_items(to_vector(meter_, value));
      return out_.put("])");
    }
    if (const auto* macro = value.shared<const MacroValue>()) {
      return out_.put(fmt::format("<Macro '{}'>", macro->name));
    }
    // Python would print a memory address, which differs from run to run.
    refuse(meter_, fmt::format("a {} cannot be printed", type_name(value)));
  }

  Meter& meter_;
  Output out_;
  int depth_ = 0;
};

class JsonWriter {
 public:
  JsonWriter(Meter& meter, const JsonStyle& style) : meter_(meter), style_(style), out_(meter) {}

  void write(const Value& value) {
    meter_.step();
    if (const Text* text = value.text()) return write_string(*text);
    if (const Sequence* sequence = value.sequence()) return write_sequence(*sequence);
    if (const Dict* dict = value.dict()) return write_dict(*dict);
    if (const auto scalar = scalar_text(value)) return out_.put(*scalar);
    refuse(meter_, fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }
  Text take() { return out_.take(); }

 private:
  static std::optional<std::string> scalar_text(const Value& value) {
    if (value.is_none()) return "null";
    if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
    if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
    if (const auto* number = value.get<double>()) return json_float(*number);
    return std::nullopt;
  }

  void write_string(const Text& text) {
    out_.put_quoted("\"", text, [this](std::string& to, char32_t value, std::string_view as_written) {
      append_json_character(to, value, as_written, style_.ensure_ascii);
    });
  }

  void new_line() {
    if (!style_.indent) return;
    std::string line = "\n";
    for (int i = 0; i < depth_; ++i) line += *style_.indent;
    out_.put(line);
  }

  // Items between brackets, each on a line of its own if the style indents.
  template <class Items, class Write>
  void write_container(std::string_view brackets, const Items& items, Write&& write_item) {
    if (items.empty()) return out_.put(brackets);
    out_.put(brackets.substr(0, 1));
    ++depth_;
    out_.put_list(items, style_.item_separator, [&](const auto& item) {
      new_line();
      write_item(item);
    });
    --depth_;
    new_line();
    out_.put(brackets.substr(1));
  }

  void write_sequence(const Sequence& sequence) {
    write_container("[]", sequence.items, [this](const Value& item) { write(item); });
  }

  void write_key(const Value& key) {
    if (const Text* text = key.text()) return write_string(*text);
    const auto scalar = scalar_text(key);
    if (!scalar) {
      refuse(meter_, fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out_.put("\"" + *scalar + "\"");
  }

  void write_dict(const Dict& dict) {
    std::vector<const DictEntry*> entries;
    for (const DictEntry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const DictEntry* a, const DictEntry* b) {
        return compare(meter_, CompareOperator::less, a->key, b->key);
      });
    }
    write_container("{}", entries, [this](const DictEntry* entry) {
      write_key(entry->key);
      out_.put(style_.key_separator);
      write(entry->value);
    });
  }

  Meter& meter_;
  const JsonStyle& style_;
  Output out_;
  int depth_ = 0;
};

}  // namespace

Text to_repr(Meter& meter, const Value& value) {
  ReprWriter writer(meter);
  writer.write(value);
  return writer.take();
}

Text to_text(Meter& meter, const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  return to_repr(meter, value);
}

Text to_json(Meter& meter, const Value& value, const JsonStyle& style) {
  JsonWriter writer(meter, style);
  writer.write(value);
  return writer.take();
}

Text escape_html(Meter& meter, const Text& text) {
  return map_characters(meter, text, [](std::string& out, char32_t value, std::string_view as_written) {
    const std::string_view escape = html_escape(value);
    out += escape.empty() ? as_written : escape;
  });
}

Value concatenate_strings(Meter& meter, const String& left, const String& right) {
  const bool markup = left.markup || right.markup;
  Text result = markup && !left.markup ? escape_html(meter, left.text) : left.text;
  result.append(meter, markup && !right.markup ? escape_html(meter, right.text) : right.text);
  return String{std::move(result), markup};
}

}  // namespace inferno::jinja
