// The names that templates can use without defining them: filters, tests, global functions and methods of
// values. This header declares how they are looked up and how they read their arguments.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/value/value.h"

namespace inferno::jinja {

// nullptr if there is none of that name.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
Callable::Function find_global(std::string_view name);
Callable::Function find_method(const Value& self, std::string_view name);

// A method that Python has and the sandbox forbids because it would change a list or a dictionary.
bool is_forbidden_method(const Value& self, std::string_view name);

// A method that Python has and this implementation has not. Treating it as a missing attribute would be
// silently wrong.
bool is_unsupported_method(const Value& self, std::string_view name);

struct Builtin {
  std::string_view name;
  Callable::Function function;
};
// nullptr if the table has none of that name.
Callable::Function find_builtin(std::span<const Builtin> table, std::string_view name);

// The filters of filters_sequence.cpp, which find_filter() searches, too.
std::span<const Builtin> sequence_filters();

// The arguments of a builtin, bound to its parameters as Python would. Missing ones are nullptr.
class Parameters {
 public:
  // Refuses unknown names, repeated names, too many arguments, and fewer than `required`.
  Parameters(const Meter& meter, std::string_view function, const Arguments& given,
             std::initializer_list<std::string_view> names, std::size_t required = 0);

  const Value* operator[](std::size_t index) const { return values_[index]; }
  Value value(std::size_t index, const Value& otherwise) const;
  bool truth(std::size_t index, bool otherwise) const;
  // Refuses a value that is not an integer. None counts as absent.
  std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  // Refuses a value that is not a string. None counts as absent.
  const Text* text(std::size_t index) const;

 private:
  const Meter& meter_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace inferno::jinja
