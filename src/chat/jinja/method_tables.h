// The methods of values by type, one file each. find_method() chooses the table.
#pragma once

#include <span>

#include "chat/jinja/builtins.h"

namespace inferno::jinja {

struct MethodEntry {
  std::string_view name;
  Callable::Function function;
};

std::span<const MethodEntry> string_methods();           // string_methods.cpp
std::span<const MethodEntry> string_question_methods();  // string_questions.cpp: isdigit() and its kin

}  // namespace inferno::jinja
