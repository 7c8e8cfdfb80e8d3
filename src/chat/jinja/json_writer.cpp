#include "chat/jinja/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/numbers.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/printing.h"

namespace inferno::jinja {
namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  out += fmt::format("\\u{:04x}", unit);
}

void append_json_character(std::string& out, char32_t value, std::string_view as_written, bool ascii) {
  const auto code = static_cast<std::uint32_t>(value);
  if (value == U'"' || value == U'\\') {
    out += '\\';
    out += as_written;
  } else if (value == U'\n') {
    out += "\\n";
  } else if (value == U'\r') {
    out += "\\r";
  } else if (value == U'\t') {
    out += "\\t";
  } else if (value == U'\b') {
    out += "\\b";
  } else if (value == U'\f') {
    out += "\\f";
  } else if (code < 0x20 || (ascii && code >= 0x7F && code < 0x10000)) {
    append_unit(out, code);
  } else if (ascii && code >= 0x10000) {
    append_unit(out, 0xD800 + ((code - 0x10000) >> 10));
    append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    out += as_written;
  }
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return format_float(value);
}

class JsonWriter {
 public:
  JsonWriter(Meter& meter, const JsonStyle& style) : meter_(meter), style_(style) {}

  void write(const Value& value) {
    meter_.step();
    if (const Text* text = value.text()) return write_string(*text);
    if (const Sequence* sequence = value.sequence()) return write_sequence(*sequence);
    if (const Dict* dict = value.dict()) return write_dict(*dict);
    if (const auto scalar = scalar_text(value)) return put(*scalar);
    refuse(meter_, fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  Text out;

 private:
  void put(std::string_view text) { out.append(meter_, text, Origin::trusted); }

  static std::optional<std::string> scalar_text(const Value& value) {
    if (value.is_none()) return "null";
    if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
    if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
    if (const auto* number = value.get<double>()) return json_float(*number);
    return std::nullopt;
  }

  void write_string(const Text& text) {
    put("\"");
    out.append(meter_,
               map_characters(meter_, text, [&](std::string& to, char32_t value, std::string_view raw) {
                 append_json_character(to, value, raw, style_.ensure_ascii);
               }));
    put("\"");
  }

  void new_line() {
    if (!style_.indent) return;
    std::string line = "\n";
    for (int i = 0; i < depth_; ++i) line += *style_.indent;
    put(line);
  }

  void write_sequence(const Sequence& sequence) {
    if (sequence.items.empty()) return put("[]");
    put("[");
    ++depth_;
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line();
      write(sequence.items[i]);
    }
    --depth_;
    new_line();
    put("]");
  }

  void write_key(const Value& key) {
    if (const Text* text = key.text()) return write_string(*text);
    const auto scalar = scalar_text(key);
    if (!scalar) {
      refuse(meter_, fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    put("\"" + *scalar + "\"");
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) return put("{}");
    std::vector<const DictEntry*> entries;
    for (const DictEntry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const DictEntry* a, const DictEntry* b) {
        return compare(meter_, CompareOperator::less, a->key, b->key);
      });
    }
    put("{");
    ++depth_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line();
      write_key(entries[i]->key);
      put(style_.key_separator);
      write(entries[i]->value);
    }
    --depth_;
    new_line();
    put("}");
  }

  Meter& meter_;
  const JsonStyle& style_;
  int depth_ = 0;
};

}  // namespace

JsonStyle json_style(Meter& meter, const Parameters& given) {
  JsonStyle style;
  style.ensure_ascii = given.truth(0, false);
  style.sort_keys = given.truth(3, false);
  if (given[1] != nullptr && !given[1]->is_none()) {
    constexpr std::int64_t widest_indent = 1024;
    const Text* text = given[1]->text();
    const std::int64_t width =
        text != nullptr ? static_cast<std::int64_t>(text->size()) : given.integer(1, 0);
    if (width > widest_indent) refuse(meter, "tojson(): 'indent' is beyond 1024 characters");
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

Text write_json(Meter& meter, const Value& value, const JsonStyle& style) {
  JsonWriter writer(meter, style);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace inferno::jinja
