#include "hub/http/message.h"

#include <cctype>

namespace inferno::hub {

void Headers::add(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view blank = " \t\r\n";
  std::string_view value = line.substr(colon + 1);
  const std::size_t begin = value.find_first_not_of(blank);
  value = begin == std::string_view::npos ? std::string_view()
                                          : value.substr(begin, value.find_last_not_of(blank) + 1 - begin);
  values_[std::move(name)] = std::string(value);
}

const std::string& Headers::operator[](std::string_view name) const {
  static const std::string absent;
  const auto found = values_.find(name);
  return found == values_.end() ? absent : found->second;
}

}  // namespace inferno::hub
