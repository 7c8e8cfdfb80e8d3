// Standard input, output and error: reading and writing everything, and a question to the user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::terminal {

// Writes all bytes. False if the reader is gone (a closed pipe, a terminal that hung up); requires
// ignore_closed_pipes(). Error{io} if writing fails for another reason, such as a full disk.
bool write_out(int file, std::string_view bytes);

// Writes lines of a log to a file that may not be read. Thread-safe, and never waits: a line for which there
// is no room is dropped, and the next one is preceded by their number.
class LineWriter {
 public:
  explicit LineWriter(int file) : file_(file) {}
  void write(std::string_view line);

 private:
  bool try_write(std::string_view line) const;

  const int file_;
  std::mutex mutex_;
  std::size_t dropped_ = 0;  // lines since the last one that was written
};

// Makes writing into a closed pipe an error code instead of a signal, for the rest of the process.
void ignore_closed_pipes();

}  // namespace inferno::terminal

namespace inferno {

// Writes to standard error and ignores failures: a note that cannot be written must not end a command.
void say(std::string_view text);

// All of standard input, byte for byte. Error{io} if reading fails, Error{unsupported} if it has more than
// `max_bytes`.
struct InputCallbacks {
  std::function<void(std::size_t bytes)> received = {};  // after each piece, with the sum so far; may throw
  std::function<void()> waiting = {};                    // once, if nothing comes for two seconds
};
std::string read_standard_input(std::uint64_t max_bytes, const InputCallbacks& callbacks = {});

// Whether ask_yes() can ask: stdin and stderr are terminals.
bool can_ask();

// Asks on stderr and reads a line of stdin: true for "y" or "yes", false for anything else and at the end of
// the input. nullopt unless can_ask().
std::optional<bool> ask_yes(const std::string& question);

}  // namespace inferno
