// The one exception type. It is thrown where a failure is detected and caught at few boundaries: main(), the
// engine's thread, one turn of a conversation, one line of a batch.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace inferno {

enum class ErrorKind {
  invalid_request,  // the caller's fault: HTTP 400, exit code 2
  not_found,        // no such model, file or route: 404, exit code 3
  unsupported,      // valid, but this build or device cannot do it: 400, exit code 4
  corrupt,          // a file contradicts itself: 400, exit code 4
  overloaded,       // queue or KV cache full: 429
  io,               // memory, disk, permission: exit code 6
  network,          // exit code 5
  device,           // CUDA failed, the engine must be restarted: exit code 7
  internal,         // a broken invariant, i.e. our bug: exit code 1
};

// Optional details of an error: its cause, and what the user can do about it.
struct Advice {
  std::string why;
  std::string next;
};

// what() names the file or field, what was expected and what was found, in one line or a short list.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what, Advice advice = {})
      : std::runtime_error(what), kind_(kind), advice_(std::move(advice)) {}
  ErrorKind kind() const noexcept { return kind_; }
  const Advice& advice() const noexcept { return advice_; }

 private:
  ErrorKind kind_;
  Advice advice_;
};

[[noreturn]] inline void fail(ErrorKind kind, const std::string& what, Advice advice = {}) {
  throw Error(kind, what, std::move(advice));
}

// Checks an internal invariant. Cheap enough to stay on in release builds; never used on user input.
inline void expects(bool condition, std::string_view invariant,
                    std::source_location at = std::source_location::current()) {
  if (!condition) {
    fail(ErrorKind::internal,
         std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " + std::string(invariant),
         {.why = {}, .next = "this is a bug in Inferno: please report it with the command that led here"});
  }
}

}  // namespace inferno
