// Text from files, models and hubs on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

// Control characters shown escaped (tab and newline kept), so that nothing a file holds can drive the terminal.
std::string printable(std::string_view text);

}  // namespace inferno
