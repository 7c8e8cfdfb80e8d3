// JSON as a stream of events, so that no document can cost more than the reader keeps of it: nesting is
// bounded, nothing recurses, and no tree is built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace inferno {

// Whole numbers from 0 to 2^64 - 1 arrive as integers, all others as double.
using JsonScalar = std::variant<std::nullptr_t, bool, std::uint64_t, double, std::string>;

// What a reader overrides; calls come in document order. A reader may throw.
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

// Error{corrupt} naming `origin` and the place when the text is not one JSON value or nests deeper than
// `max_depth`.
void parse_json(std::string_view text, std::string_view origin, int max_depth, JsonEvents& events);

}  // namespace inferno
