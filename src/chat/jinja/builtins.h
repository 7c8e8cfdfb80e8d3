// The names templates find without defining them: filters, tests, global functions and methods of values.
// Each family of them is a table in its own file; this header is how they are looked up and written.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/ast.h"
#include "chat/jinja/value.h"

namespace inferno::jinja {

// nullptr when there is none of that name.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
Callable::Function find_global(std::string_view name);
Callable::Function find_method(const Value& self, std::string_view name);

// A method Python has and the sandbox forbids because it would change a list or a dictionary.
bool is_forbidden_method(const Value& self, std::string_view name);

// A method Python has and we do not. Taking it for a missing attribute would be silently wrong.
bool is_unsupported_method(const Value& self, std::string_view name);

struct FilterEntry {
  std::string_view name;
  FilterFunction function;
};

// The arguments of a builtin, put to its parameters as Python would. Missing ones are nullptr.
class Parameters {
 public:
  // Refuses unknown names, repeated ones, too many, and fewer than `required`.
  Parameters(const Meter& meter, std::string_view function, const Arguments& given,
             std::initializer_list<std::string_view> names, std::size_t required = 0);

  const Value* operator[](std::size_t index) const { return values_[index]; }
  Value value(std::size_t index, const Value& otherwise) const;
  bool truth(std::size_t index, bool otherwise) const;
  // Refuses a value that is no integer. None counts as absent.
  std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  // Refuses a value that is no string. None counts as absent.
  const Text* text(std::size_t index) const;

 private:
  const Meter& meter_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace inferno::jinja
