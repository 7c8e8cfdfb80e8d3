// tojson: json.dumps as Python writes it.
#pragma once

#include "chat/jinja/builtins.h"

namespace inferno::jinja {

struct JsonStyle {
  bool ensure_ascii = false;  // Hugging Face's default, not Python's
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; nullopt: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// From the parameters ensure_ascii, indent, separators, sort_keys, in this order.
JsonStyle json_style(Meter& meter, const Parameters& given);

Text write_json(Meter& meter, const Value& value, const JsonStyle& style);

}  // namespace inferno::jinja
