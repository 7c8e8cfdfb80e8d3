// "%s" % value and "{}".format(value).
#pragma once

#include "chat/jinja/value.h"

namespace inferno::jinja {

class Interpreter;

Value format_percent(Meter& meter, const String& format, const Value& arguments);
Value format_braces(Meter& meter, const String& format, const Arguments& arguments);

// One number or text under a format spec such as ">8.2f": fill, alignment, sign, width, grouping,
// precision, type.
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > = ^, or 0 for the type's own
  char sign = '-';
  bool alternate = false;
  std::int64_t width = 0;
  char grouping = 0;
  std::int64_t precision = -1;
  char type = 0;
};
Text format_value(Meter& meter, const Value& value, const FormatSpec& spec);

}  // namespace inferno::jinja
