#include "cli/commands/shared/other_programs.h"

#include <algorithm>

namespace inferno {

std::vector<std::string_view> words_of_list(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

const OtherFlag* find_flag_of_others(std::string_view argument) {
  const std::span<const OtherFlag> flags = flags_of_other_programs();
  const auto find = [&](std::string_view name) {
    const auto has_name = [&](const OtherFlag& flag) {
      return std::ranges::count(words_of_list(flag.names), name) > 0;
    };
    const auto found = std::ranges::find_if(flags, has_name);
    return found == flags.end() ? nullptr : &*found;
  };
  const std::string_view name = argument.substr(0, argument.find('='));
  const OtherFlag* flag = find(name);
  // vLLM takes a part of a structured value as "--compilation-config.level=3".
  return flag == nullptr && name.find('.') != name.npos ? find(name.substr(0, name.find('.'))) : flag;
}

bool is_long_with_one_dash(std::string_view argument) {
  return argument.size() > 2 && argument[0] == '-' && argument[1] != '-' && argument[2] != '=' &&
         find_flag_of_others(argument) != nullptr;
}

bool is_harmless(const OtherFlag& flag, std::string_view value) {
  std::string_view left = flag.values;
  if (left == "*") return true;
  if (left.starts_with('?')) left.remove_prefix(1);
  return std::ranges::count(words_of_list(left), value) > 0;
}

}  // namespace inferno
