// Text from a file, a model or the environment on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

// The same text with whatever could drive the terminal shown as \xNN: control characters except newline and
// tab, the C1 controls, marks that change the direction of writing, and bytes that are not UTF-8.
std::string printable(std::string_view text);

}  // namespace inferno
