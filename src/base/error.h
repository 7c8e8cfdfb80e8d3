// The one exception type. Thrown where the fact is known, caught at few boundaries only:
// cli/main.cpp, server/routes.cpp, the engine loop, and where one turn of play or line of a batch may fail.
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
  device,           // CUDA failed, the engine is no longer usable: exit code 7
  internal,         // a broken invariant, i.e. our bug: exit code 1
};

// What stands behind an error, where it adds something: the cause, and what the user can do about it.
struct Advice {
  std::string why;
  std::string next;
};

// what() names the file or field, the expectation and the finding, in one line or a short list.
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

// An invariant of ours. Cheap enough to stay on in release builds; never used on user input.
inline void expects(bool condition, std::string_view invariant,
                    std::source_location at = std::source_location::current()) {
  if (!condition) {
    fail(ErrorKind::internal,
         std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " + std::string(invariant),
         {.why = {}, .next = "this is a bug in Inferno: please report it with the command that led here"});
  }
}

}  // namespace inferno
