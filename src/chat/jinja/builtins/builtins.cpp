#include "chat/jinja/builtins/builtins.h"

#include <fmt/format.h>

#include <algorithm>

namespace inferno::jinja {

Callable::Function find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : found->function;
}

Parameters::Parameters(const Meter& meter, std::string_view function, const Arguments& given,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : meter_(meter), function_(function), names_(names), values_(names.size(), nullptr) {
  if (given.positional.size() > names_.size()) {
    refuse(meter, fmt::format("{}() takes at most {} arguments ({} given)", function, names_.size(),
                              given.positional.size()));
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      refuse(meter,
             fmt::format("{}() got an unexpected keyword argument '{}'", function, name.substr(0, 80)));
    }
    const auto index = static_cast<std::size_t>(found - names_.begin());
    if (values_[index] != nullptr) {
      refuse(meter, fmt::format("{}() got multiple values for argument '{}'", function, *found));
    }
    values_[index] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      refuse(meter, fmt::format("{}() is missing its argument '{}'", function, names_[i]));
    }
  }
}

Value Parameters::value(std::size_t index, const Value& otherwise) const {
  return values_[index] == nullptr ? otherwise : *values_[index];
}

bool Parameters::truth(std::size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : is_true(*values_[index]);
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t otherwise) const {
  if (values_[index] == nullptr || values_[index]->is_none()) return otherwise;
  return to_index(meter_, *values_[index], fmt::format("{}(): '{}'", function_, names_[index]));
}

const Text* Parameters::text(std::size_t index) const {
  if (values_[index] == nullptr || values_[index]->is_none()) return nullptr;
  if (const auto* missing = values_[index]->get<Undefined>()) refuse_undefined(meter_, *missing);
  if (!values_[index]->is_string()) {
    refuse(meter_, fmt::format("{}(): '{}' must be str, not {}", function_, names_[index],
                               type_name(*values_[index])));
  }
  return values_[index]->text();
}

}  // namespace inferno::jinja
