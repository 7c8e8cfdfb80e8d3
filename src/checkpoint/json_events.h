// JSON as a stream of events, for untrusted documents: nesting is bounded, there is no recursion, and no tree
// is built, so memory is limited to what the reader keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace inferno {

// Whole numbers from 0 to 2^64 - 1 are integers, all others are double.
using JsonScalar = std::variant<std::nullptr_t, bool, std::uint64_t, double, std::string>;

// Overridden by readers; called in document order. A reader may throw.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void start_object() = 0;
  virtual void key(std::string name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  virtual void scalar(JsonScalar value) = 0;
};

// Error{corrupt} naming `origin` and the position if the text is not one JSON value or is nested deeper than
// `max_depth`.
void parse_json(std::string_view text, std::string_view origin, int max_depth, JsonEvents& events);

}  // namespace inferno
