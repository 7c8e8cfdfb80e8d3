// Standard input, output and error: reading and writing everything, and a question to the user.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno::terminal {

// Writes all bytes. False if the reader is gone (a closed pipe, a terminal that hung up); requires
// ignore_closed_pipes(). Error{io} if writing fails for another reason, such as a full disk.
bool write_out(int file, std::string_view bytes);

// Makes writing into a closed pipe an error code instead of a signal, for the rest of the process.
void ignore_closed_pipes();

}  // namespace inferno::terminal

namespace inferno {

// All of standard input, byte for byte. Error{io} if reading fails.
std::string read_standard_input();

// Asks on stderr and reads a line of stdin: true for "y" or "yes", false for anything else and at the end of
// the input. nullopt if stdin or stderr is not a terminal.
std::optional<bool> ask_yes(const std::string& question);

}  // namespace inferno
