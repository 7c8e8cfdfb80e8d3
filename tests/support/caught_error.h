// The error that an action ends with, for tests that look at its kind and its words.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace inferno {

// A failed expectation, and an error of kind internal, when `action` ends without one.
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
