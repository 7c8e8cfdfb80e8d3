// Why a constraint was not compiled: what kind of reason, where in the constraint, and a sentence for its
// author.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace inferno::grammar {

enum class RefusalKind {
  unsupported,    // valid, but not enforced by Inferno; compiling it would accept what it forbids
  invalid,        // contradicts its own language: not JSON, an unclosed group, a type that does not exist
  unsatisfiable,  // no finite text satisfies it
  limit,          // too large or too costly
};

struct Refusal {
  RefusalKind kind = RefusalKind::invalid;
  std::string pointer;  // JSON pointer into a schema; empty for the whole, and for everything but schemas
  std::string keyword;  // of a schema; empty if no single keyword is to blame
  std::string message;
};

constexpr std::string_view name_of(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::unsupported: return "unsupported";
    case RefusalKind::invalid: return "invalid";
    case RefusalKind::unsatisfiable: return "unsatisfiable";
    case RefusalKind::limit: return "limit";
  }
  return "";
}

// Thrown by everything that compiles. Its ErrorKind is invalid_request for constraints that are wrong in
// themselves, unsupported for those that Inferno cannot enforce.
class RefusedError : public Error {
 public:
  explicit RefusedError(Refusal refusal)
      : Error(error_kind(refusal.kind),
              refusal.pointer.empty() ? refusal.message : refusal.pointer + ": " + refusal.message),
        refusal_(std::move(refusal)) {}
  const Refusal& refusal() const { return refusal_; }

 private:
  static ErrorKind error_kind(RefusalKind kind) {
    const bool wrong = kind == RefusalKind::invalid || kind == RefusalKind::unsatisfiable;
    return wrong ? ErrorKind::invalid_request : ErrorKind::unsupported;
  }
  Refusal refusal_;
};

[[noreturn]] inline void refuse(RefusalKind kind, std::string message) {
  throw RefusedError({.kind = kind, .pointer = {}, .keyword = {}, .message = std::move(message)});
}

}  // namespace inferno::grammar
