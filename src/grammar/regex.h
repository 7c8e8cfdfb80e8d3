// Regular expressions as parts of a constraint.
#pragma once

#include <string_view>

#include "grammar/rules.h"

namespace inferno::grammar {

enum class RegexDialect {
  whole_text,  // --regex: the whole text must match; classes as in Python with re.ASCII
  pattern,     // of a JSON schema: ECMAScript, and a match anywhere is enough
};

// Refuses what is not regular (back references, assertions other than ^ and $) and what is malformed, naming
// the byte. `form` is how the matched characters stand in the text.
Part parse_regex(Rules& rules, std::string_view expression, RegexDialect dialect, TextForm form,
                 Budget& budget);

}  // namespace inferno::grammar
