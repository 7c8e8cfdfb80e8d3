// What the rules of a reply are made of, whichever format it has: the constraint on its text and the calls
// that it may contain, as parts of the same Rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/rules.h"

namespace inferno {

struct ReplyRuleParts {
  struct Call {
    std::string name;
    grammar::Part arguments{};
  };

  std::optional<grammar::Part> text = {};  // nullopt: free text
  bool text_is_json = false;
  std::vector<Call> calls = {};  // functions that may be called
  bool must_call = false;
  bool parallel_calls = true;
};

}  // namespace inferno
