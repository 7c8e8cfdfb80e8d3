#include "chat/constraint/reply_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace inferno {
namespace {

// "/tools/0/function" as "tools[0].function".
std::string param_of(std::string_view place) {
  std::string param;
  while (!place.empty()) {
    place.remove_prefix(1);
    const std::string_view part = place.substr(0, place.find('/'));
    place.remove_prefix(part.size());
    const bool is_index = !part.empty() && std::ranges::all_of(part, [](char letter) {
      return letter >= '0' && letter <= '9';
    });
    if (is_index) {
      param += fmt::format("[{}]", part);
    } else {
      param += fmt::format("{}{}", param.empty() ? "" : ".", part);
    }
  }
  return param;
}

grammar::Refusal below(const std::string& place, grammar::Refusal refusal) {
  refusal.pointer = place + refusal.pointer;
  return refusal;
}

}  // namespace

ConstraintError::ConstraintError(const std::string& place, grammar::Refusal refusal)
    : RefusedError(below(place, std::move(refusal))), param_(param_of(place)) {}

}  // namespace inferno
