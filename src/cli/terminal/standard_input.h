// All of standard input, byte for byte.
#pragma once

#include <string>

namespace inferno {

// Error{io} when reading fails.
std::string read_standard_input();

}  // namespace inferno
