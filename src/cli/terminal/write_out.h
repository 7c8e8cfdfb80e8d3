// Bytes to a file descriptor, whole, with a reader that went away as an ordinary outcome.
#pragma once

#include <string_view>

namespace inferno::terminal {

// False when the reader is gone (a closed pipe, a terminal that hung up). SIGPIPE must be ignored.
// Error{io} when writing fails for another reason, such as a full disk.
bool write_out(int file, std::string_view bytes);

// Writing into a closed pipe becomes an answer instead of a signal, for the rest of the process.
void ignore_closed_pipes();

}  // namespace inferno::terminal
