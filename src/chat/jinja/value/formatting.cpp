// "%s" % value and "{}".format(value).
#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/value/value.h"

namespace inferno::jinja {
namespace {

constexpr std::int64_t max_digits = 1000;
constexpr std::int64_t max_width = 1'000'000;

// A format spec such as ">8.2f".
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > = ^, or 0 for the default of the type
  char sign = '-';
  bool alternate = false;
  std::int64_t width = 0;
  char grouping = 0;
  std::int64_t precision = -1;
  char type = 0;
};

std::string group_digits(const std::string& digits, char separator, std::size_t every) {
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) grouped += separator;
    grouped += digits[i];
  }
  return grouped;
}

std::string integer_digits(std::uint64_t magnitude, const FormatSpec& spec) {
  std::string prefix;
  std::string digits;
  std::size_t every = 3;
  if (spec.type == 'x' || spec.type == 'X') {
    digits = spec.type == 'x' ? fmt::format("{:x}", magnitude) : fmt::format("{:X}", magnitude);
    prefix = spec.type == 'x' ? "0x" : "0X";
    every = 4;
  } else if (spec.type == 'o') {
    digits = fmt::format("{:o}", magnitude);
    prefix = "0o";
    every = 4;
  } else if (spec.type == 'b') {
    digits = fmt::format("{:b}", magnitude);
    prefix = "0b";
    every = 4;
  } else {
    digits = fmt::format("{}", magnitude);
  }
  if (spec.grouping != 0) digits = group_digits(digits, spec.grouping, every);
  return spec.alternate ? prefix + digits : digits;
}

std::string float_digits(double magnitude, const FormatSpec& spec) {
  const bool upper = spec.type == 'F' || spec.type == 'E' || spec.type == 'G';
  std::string text;
  if (!std::isfinite(magnitude)) {
    text = std::isnan(magnitude) ? "nan" : "inf";
  } else {
    const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    const char type = static_cast<char>(spec.type | 0x20);
    if (spec.type == 0 && spec.precision < 0) {
      text = format_float(magnitude);
    } else if (type == 'f' || spec.type == '%') {
      text = fmt::format("{:.{}f}", spec.type == '%' ? magnitude * 100 : magnitude, precision);
    } else if (type == 'e') {
      text = fmt::format("{:.{}e}", magnitude, precision);
    } else {
      text = fmt::format("{:.{}g}", magnitude, precision == 0 ? 1 : precision);
    }
  }
  if (upper) {
    for (char& letter : text) {
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 32);
    }
  }
  const std::size_t whole = text.find_first_not_of("0123456789");
  if (spec.grouping != 0 && whole != 0) {
    text = group_digits(text.substr(0, whole), spec.grouping, 3) +
           (whole == std::string::npos ? "" : text.substr(whole));
  }
  return spec.type == '%' ? text + "%" : text;
}

std::string sign_of(bool negative, char wanted) {
  if (negative) return "-";
  return wanted == '-' ? "" : std::string(1, wanted);
}

Text aligned(Meter& meter, const Text& text, const FormatSpec& spec, char natural, std::size_t sign_bytes) {
  const auto count = static_cast<std::int64_t>(code_point_count(text.view()));
  const std::int64_t missing = spec.width - count;
  if (missing <= 0) return text;
  const char align = spec.align == 0 ? natural : spec.align;
  if (align == '<') return pad(meter, text, 0, missing, spec.fill);
  if (align == '^') return pad(meter, text, missing / 2, missing - missing / 2, spec.fill);
  if (align == '>') return pad(meter, text, missing, 0, spec.fill);
  Text result = text.slice(0, sign_bytes);
  result.append(meter, pad(meter, text.slice(sign_bytes, text.size() - sign_bytes), missing, 0, spec.fill));
  return result;
}

Text format_text(Meter& meter, const Text& text, const FormatSpec& spec) {
  if (spec.type != 0 && spec.type != 's') {
    refuse(meter, fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  }
  Text shown = text;
  if (spec.precision >= 0) {
    shown = text.slice(0, offset_of(text.view(), static_cast<std::size_t>(spec.precision)));
  }
  return aligned(meter, shown, spec, '<', 0);
}

Text format_value(Meter& meter, const Value& value, const FormatSpec& spec) {
  if (spec.precision > max_digits) refuse(meter, "a format asks for more than 1000 digits");
  const bool as_text = spec.type == 's' || (value.get<bool>() != nullptr && spec.type == 0);
  if (value.is_string() || as_text) return format_text(meter, to_text(meter, value), spec);
  const bool float_type =
      spec.type != 0 && std::string_view("fFeEgG%").find(spec.type) != std::string_view::npos;
  const bool integer_type =
      spec.type != 0 && std::string_view("dxXobn").find(spec.type) != std::string_view::npos;
  std::string sign;
  std::string digits;
  if (const auto integer = as_integer(value); integer && !float_type) {
    if (spec.type == 'c') {
      utf8::append(digits, static_cast<char32_t>(*integer >= 0 && *integer < 0xD800 ? *integer : U'?'));
    } else if (spec.type != 0 && !integer_type) {
      refuse(meter, fmt::format("Unknown format code '{}' for object of type 'int'", spec.type));
    } else {
      sign = sign_of(*integer < 0, spec.sign);
      const auto bits = static_cast<std::uint64_t>(*integer);
      digits = integer_digits(*integer < 0 ? 0 - bits : bits, spec);
    }
  } else if (const auto number = as_number(value); number && !integer_type) {
    sign = sign_of(std::signbit(*number) && !std::isnan(*number), spec.sign);
    digits = float_digits(std::fabs(*number), spec);
  } else if (spec.type == 0 && spec.width == 0 && spec.precision < 0) {
    return to_text(meter, value);
  } else {
    refuse(meter, fmt::format("unsupported format for a value of type '{}'", type_name(value)));
  }
  return aligned(meter, Text(meter, sign + digits, Origin::trusted), spec, '>', sign.size());
}

// "%(name)-08.3f"
class PercentFormatter {
 public:
  PercentFormatter(Meter& meter, const String& format, const Value& arguments)
      : meter_(meter),
        format_(format.text),
        view_(format.text.view()),
        escapes_(format.markup),
        arguments_(arguments) {}

  Text run() {
    while (at_ < view_.size()) {
      const std::size_t percent = std::min(view_.find('%', at_), view_.size());
      out_.append(meter_, format_.slice(at_, percent - at_));
      at_ = percent;
      if (at_ < view_.size()) conversion();
    }
    const Sequence* tuple = positional();
    const std::size_t given = tuple != nullptr ? tuple->items.size() : 1;
    // A single mapping or list need not be used, as in Python.
    const bool must_be_used =
        tuple != nullptr || (arguments_.dict() == nullptr && arguments_.sequence() == nullptr);
    if (must_be_used && used_ < given && !named_)
      refuse(meter_, "not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  const Sequence* positional() const {
    const Sequence* sequence = arguments_.sequence();
    return sequence != nullptr && sequence->kind != SequenceKind::list ? sequence : nullptr;
  }

  char letter() {
    if (at_ >= view_.size()) refuse(meter_, "incomplete format");
    return view_[at_];
  }

  Value next_argument() {
    const Sequence* tuple = positional();
    const std::size_t index = used_++;
    if (tuple == nullptr && index == 0) return arguments_;
    if (tuple == nullptr || index >= tuple->items.size())
      refuse(meter_, "not enough arguments for format string");
    return tuple->items[index];
  }

  Value named_argument() {
    const std::size_t end = view_.find(')', at_);
    if (end == std::string_view::npos) refuse(meter_, "incomplete format key");
    if (arguments_.dict() == nullptr) refuse(meter_, "format requires a mapping");
    const Value* found = arguments_.dict()->find(view_.substr(at_ + 1, end - at_ - 1));
    if (found == nullptr) {
      refuse(meter_, fmt::format("'{}'", view_.substr(at_ + 1, std::min<std::size_t>(end - at_ - 1, 80))));
    }
    at_ = end + 1;
    named_ = true;
    return *found;
  }

  std::int64_t number() {
    if (letter() == '*') {
      ++at_;
      return to_index(meter_, next_argument(), "a format width");
    }
    std::int64_t value = 0;
    while (letter() >= '0' && letter() <= '9') {
      value = value * 10 + (view_[at_++] - '0');
      if (value > max_width) refuse(meter_, "a format field is too wide");
    }
    return value;
  }

  void flags(FormatSpec& spec) {
    for (;; ++at_) {
      const char flag = letter();
      if (flag == '-') {
        spec.align = '<';
      } else if (flag == '0') {
        if (spec.align == 0) spec.align = '=';
        if (spec.align == '=') spec.fill = "0";
      } else if (flag == '+') {
        spec.sign = '+';
      } else if (flag == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (flag == '#') {
        spec.alternate = true;
      } else {
        return;
      }
    }
  }

  void conversion() {
    ++at_;
    std::optional<Value> named;
    if (letter() == '(') named = named_argument();
    FormatSpec spec;
    flags(spec);
    spec.width = number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (letter() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(0, number());
    }
    while (letter() == 'l' || letter() == 'h' || letter() == 'L') ++at_;
    const char type = view_[at_++];
    if (type == '%') return out_.append(meter_, "%", Origin::trusted);
    write(type, spec, named ? *named : next_argument());
  }

  void write(char type, FormatSpec spec, const Value& value) {
    if (type == 's' || type == 'r' || type == 'a' || type == 'c') {
      spec.type = 's';
      if (spec.align != '<') spec.align = '>';
      spec.fill = " ";
      const bool is_code = type == 'c' && as_integer(value);
      Text shown = type == 'r' || type == 'a' ? to_repr(meter_, value) : to_text(meter_, value);
      if (is_code) {
        std::string character;
        utf8::append(character, static_cast<char32_t>(*as_integer(value) & 0xFFFF));
        shown = Text(meter_, character, Origin::trusted);
      }
      if (escapes_ && !value.is_markup()) shown = escape_html(meter_, shown);
      return out_.append(meter_, format_value(meter_, shown, spec));
    }
    if (const auto* missing = value.get<Undefined>()) refuse_undefined(meter_, *missing);
    if (!as_number(value)) {
      refuse(meter_, fmt::format("%{} format: a number is required, not {}", type, type_name(value)));
    }
    const bool is_float = std::string_view("eEfFgG").find(type) != std::string_view::npos;
    if (!is_float && std::string_view("diuxXo").find(type) == std::string_view::npos) {
      refuse(meter_, fmt::format("unsupported format character '{}'", type));
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    const auto* number = value.get<double>();
    const bool truncates = !is_float && number != nullptr;
    if (truncates && !(std::fabs(*number) < 9e18)) refuse(meter_, "the number is beyond 64 bits");
    const Value shown = truncates ? Value(static_cast<std::int64_t>(*number)) : value;
    out_.append(meter_, format_value(meter_, shown, spec));
  }

  Meter& meter_;
  const Text& format_;
  std::string_view view_;
  bool escapes_;  // Markup escapes the values inserted into it
  const Value& arguments_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool named_ = false;
  Text out_;
};

class BraceFormatter {
 public:
  // `escapes`: Markup escapes the values inserted into it.
  BraceFormatter(Meter& meter, const Arguments& arguments, bool escapes)
      : meter_(meter), arguments_(arguments), escapes_(escapes) {}

  // `nesting`: a format spec may contain fields, but only one level of them.
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
      if (value > max_width) refuse(meter_, "a format field is too wide");
    }
    return value;
  }

  Meter& meter_;
  const Arguments& arguments_;
  bool escapes_;
  std::int64_t next_ = 0;
};

}  // namespace

Value format_percent(Meter& meter, const String& format, const Value& arguments) {
  return String{PercentFormatter(meter, format, arguments).run(), format.markup};
}

Value format_braces(Meter& meter, const String& format, const Arguments& arguments) {
  return String{BraceFormatter(meter, arguments, format.markup).run(format.text, 1), format.markup};
}

}  // namespace inferno::jinja
