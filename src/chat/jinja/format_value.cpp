// One value under one format spec.
#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/string_functions.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

constexpr std::int64_t max_digits = 1000;

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

}  // namespace

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

}  // namespace inferno::jinja
