#include "chat/jinja/printing.h"

#include <fmt/format.h>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/operations.h"

namespace inferno::jinja {
namespace {

void append_escaped(std::string& out, char32_t value, char quote, std::string_view as_written) {
  const auto code = static_cast<std::uint32_t>(value);
  if (value == static_cast<char32_t>(quote) || value == U'\\') {
    out += '\\';
    out += static_cast<char>(value);
  } else if (value == U'\n') {
    out += "\\n";
  } else if (value == U'\r') {
    out += "\\r";
  } else if (value == U'\t') {
    out += "\\t";
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

// Writes repr() of nested values into one text.
class ReprWriter {
 public:
  explicit ReprWriter(Meter& meter) : meter_(meter) {}

  void write(const Value& value) {
    meter_.step();
    if (value.is_undefined()) return put("Undefined");
    if (value.is_none()) return put("None");
    if (const auto* flag = value.get<bool>()) return put(*flag ? "True" : "False");
    if (const auto* integer = value.get<std::int64_t>()) return put(std::to_string(*integer));
    if (const auto* number = value.get<double>()) return put(format_float(*number));
    if (const auto* string = value.get<String>()) return write_string(*string);
    meter_.check_depth(++depth_, "printed values");
    write_object(value);
    --depth_;
  }

  Text out;

 private:
  void put(std::string_view text) { out.append(meter_, text, Origin::trusted); }

  void write_string(const String& string) {
    const std::string_view view = string.text.view();
    const bool has_single = view.find('\'') != std::string_view::npos;
    const char quote = has_single && view.find('"') == std::string_view::npos ? '"' : '\'';
    const std::string_view mark(&quote, 1);
    if (string.markup) put("Markup(");
    put(mark);
    out.append(meter_,
               map_characters(meter_, string.text, [&](std::string& to, char32_t c, std::string_view w) {
                 append_escaped(to, c, quote, w);
               }));
    put(mark);
    if (string.markup) put(")");
  }

  void write_items(const std::vector<Value>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(", ");
      write(items[i]);
    }
  }

  void write_dict(const Dict& dict) {
    put("{");
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) put(", ");
      write(dict.entries[i].key);
      put(": ");
      write(dict.entries[i].value);
    }
    put("}");
  }

  void write_namespace(const Namespace& space) {
    put("<Namespace {");
    for (std::size_t i = 0; i < space.attributes.size(); ++i) {
      if (i > 0) put(", ");
      write(Text::constant(space.attributes[i].first));
      put(": ");
      write(space.attributes[i].second);
    }
    put("}>");
  }

  void write_sequence(const Sequence& sequence) {
    const bool list = sequence.kind == SequenceKind::list;
    put(list ? "[" : "(");
    write_items(sequence.items);
    put(list ? "]" : sequence.items.size() == 1 ? ",)" : ")");
  }

  void write_object(const Value& value) {
    if (const Sequence* sequence = value.sequence()) return write_sequence(*sequence);
    if (const Dict* dict = value.dict()) return write_dict(*dict);
    if (const auto* space = value.shared<Namespace>()) return write_namespace(*space);
    if (const auto* range = value.shared<const Range>()) {
      const std::string step = range->step == 1 ? "" : fmt::format(", {}", range->step);
      return put(fmt::format("range({}, {}{})", range->start, range->stop, step));
    }
    if (value.shared<const DictView>() != nullptr) {
      put(type_name(value));
      put("([");
      write_items(to_vector(meter_, value));
      return put("])");
    }
    if (const auto* macro = value.shared<const MacroValue>()) {
      return put(fmt::format("<Macro '{}'>", macro->macro->name));
    }
    // Python would print a memory address here, which no two runs agree on.
    refuse(meter_, fmt::format("a {} cannot be printed", type_name(value)));
  }

  Meter& meter_;
  int depth_ = 0;
};

}  // namespace

Text to_repr(Meter& meter, const Value& value) {
  ReprWriter writer(meter);
  writer.write(value);
  return std::move(writer.out);
}

Text to_text(Meter& meter, const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  return to_repr(meter, value);
}

Text escape_html(Meter& meter, const Text& text) {
  return map_characters(meter, text, [](std::string& out, char32_t value, std::string_view as_written) {
    if (value == U'&') {
      out += "&amp;";
    } else if (value == U'<') {
      out += "&lt;";
    } else if (value == U'>') {
      out += "&gt;";
    } else if (value == U'\'') {
      out += "&#39;";
    } else if (value == U'"') {
      out += "&#34;";
    } else {
      out += as_written;
    }
  });
}

Value concatenate_strings(Meter& meter, const String& left, const String& right) {
  const bool markup = left.markup || right.markup;
  Text result = markup && !left.markup ? escape_html(meter, left.text) : left.text;
  result.append(meter, markup && !right.markup ? escape_html(meter, right.text) : right.text);
  return String{std::move(result), markup};
}

}  // namespace inferno::jinja
