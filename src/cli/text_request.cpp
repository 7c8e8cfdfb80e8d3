#include "cli/text_request.h"

#include <fmt/format.h>

namespace inferno {

std::string effort_problem(const std::string& text) {
  for (const char* known : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (text == known) return {};
  }
  return fmt::format("reasoning effort: expected low, medium or high, found \"{}\"", text);
}

Json first_messages(const std::string& system, const std::string& user) {
  Json messages = Json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", user}});
  return messages;
}

}  // namespace inferno
