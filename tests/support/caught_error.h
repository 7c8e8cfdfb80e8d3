// Returns the error that an action throws, for tests that check its kind and its message.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace inferno {

// Fails the test and returns Error{internal} if `action` does not throw.
inline Error caught_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an error";
  return Error(ErrorKind::internal, "no error");
}

}  // namespace inferno
