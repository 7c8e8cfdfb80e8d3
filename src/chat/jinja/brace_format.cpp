// str.format: "{}", "{0.name[key]!r:>8}".
#include <fmt/format.h>

#include "chat/jinja/formatting.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

constexpr std::int64_t widest_field = 1'000'000;

class BraceFormatter {
 public:
  // Markup escapes what is put into it.
  BraceFormatter(Meter& meter, const Arguments& arguments, bool escapes)
      : meter_(meter), arguments_(arguments), escapes_(escapes) {}

  // `nesting`: a format spec may hold fields of its own, once.
  Text run(const Text& format, int nesting) {
    if (nesting > 2) refuse(meter_, "Max string recursion exceeded");
    const std::string_view view = format.view();
    Text out;
    for (std::size_t at = 0; at < view.size();) {
      const std::size_t brace = std::min(view.find_first_of("{}", at), view.size());
      out.append(meter_, format.slice(at, brace - at));
      if (brace == view.size()) break;
      if (brace + 1 < view.size() && view[brace + 1] == view[brace]) {
        out.append(meter_, format.slice(brace, 1));
        at = brace + 2;
        continue;
      }
      if (view[brace] == '}') refuse(meter_, "Single '}' encountered in format string");
      const std::size_t end = field_end(view, brace + 1);
      out.append(meter_, field(format.slice(brace + 1, end - brace - 1), nesting));
      at = end + 1;
    }
    return out;
  }

 private:
  std::size_t field_end(std::string_view view, std::size_t at) {
    int open = 1;
    for (; at < view.size(); ++at) {
      if (view[at] == '{') ++open;
      if (view[at] == '}' && --open == 0) return at;
    }
    refuse(meter_, "expected '}' before end of string");
  }

  Text field(const Text& text, int nesting) {
    const std::string_view view = text.view();
    const std::size_t name_end = std::min(view.find_first_of("!:"), view.size());
    std::size_t at = name_end;
    char conversion = 0;
    if (at < view.size() && view[at] == '!') {
      if (at + 1 >= view.size()) refuse(meter_, "end of string while looking for conversion specifier");
      conversion = view[at + 1];
      at += 2;
    }
    if (at < view.size() && view[at] != ':') refuse(meter_, "expected ':' after conversion specifier");
    Value value = resolve(view.substr(0, name_end));
    if (conversion == 'r' || conversion == 'a') value = to_repr(meter_, value);
    if (conversion == 's') value = to_text(meter_, value);
    const Text spec = at < view.size() ? run(text.slice(at + 1, view.size() - at - 1), nesting + 1) : Text();
    const Text shown = format_value(meter_, value, parse_spec(spec.view()));
    return escapes_ && !value.is_markup() ? escape_html(meter_, shown) : shown;
  }

  Value resolve(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    for (std::size_t at = first_end; at < name.size();) {
      if (name[at] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        value = get_attribute(meter_, value, name.substr(at + 1, end - at - 1));
        at = end;
        continue;
      }
      const std::size_t end = name.find(']', at);
      if (name[at] != '[' || end == std::string_view::npos) refuse(meter_, "Missing ']' in format string");
      const std::string_view key = name.substr(at + 1, end - at - 1);
      const auto number = as_position(key);
      value = get_item(meter_, value, number ? Value(*number) : make_text(meter_, key));
      at = end + 1;
    }
    return value;
  }

  static std::optional<std::int64_t> as_position(std::string_view text) {
    if (text.empty() || text.size() > 9) return std::nullopt;
    std::int64_t value = 0;
    for (const char letter : text) {
      if (letter < '0' || letter > '9') return std::nullopt;
      value = value * 10 + (letter - '0');
    }
    return value;
  }

  Value argument(std::string_view name) {
    std::optional<std::int64_t> position = as_position(name);
    if (name.empty()) position = next_++;
    if (position) {
      if (*position >= static_cast<std::int64_t>(arguments_.positional.size())) {
        refuse(meter_, fmt::format("Replacement index {} out of range for positional args tuple", *position));
      }
      return arguments_.positional[static_cast<std::size_t>(*position)];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    refuse(meter_, fmt::format("'{}'", name.substr(0, 80)));
  }

  FormatSpec parse_spec(std::string_view text) {
    FormatSpec spec;
    constexpr std::string_view alignments = "<>=^";
    const auto is_align = [&](char letter) { return alignments.find(letter) != std::string_view::npos; };
    if (!text.empty()) {
      const std::size_t fill = code_point_at(text, 0).bytes;
      if (fill < text.size() && is_align(text[fill])) {
        spec.fill = std::string(text.substr(0, fill));
        spec.align = text[fill];
        text.remove_prefix(fill + 1);
      } else if (is_align(text[0])) {
        spec.align = text[0];
        text.remove_prefix(1);
      }
    }
    const auto skip = [&](char letter) {
      if (text.empty() || text[0] != letter) return false;
      text.remove_prefix(1);
      return true;
    };
    if (skip('+')) spec.sign = '+';
    if (skip('-')) spec.sign = '-';
    if (skip(' ')) spec.sign = ' ';
    spec.alternate = skip('#');
    if (skip('0') && spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    spec.width = digits(text, 0);
    if (skip(',')) spec.grouping = ',';
    if (skip('_')) spec.grouping = '_';
    if (skip('.')) spec.precision = digits(text, -1);
    if (text.size() > 1) refuse(meter_, "Invalid format specifier");
    if (!text.empty()) spec.type = text[0];
    return spec;
  }

  std::int64_t digits(std::string_view& text, std::int64_t otherwise) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return otherwise;
    std::int64_t value = 0;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1)) {
      value = value * 10 + (text[0] - '0');
      if (value > widest_field) refuse(meter_, "a format field is too wide");
    }
    return value;
  }

  Meter& meter_;
  const Arguments& arguments_;
  bool escapes_;
  std::int64_t next_ = 0;
};

}  // namespace

Value format_braces(Meter& meter, const String& format, const Arguments& arguments) {
  return String{BraceFormatter(meter, arguments, format.markup).run(format.text, 1), format.markup};
}

}  // namespace inferno::jinja
