// Exceptions of all kinds as one: for the few places that catch everything.
#pragma once

#include "base/error.h"

namespace inferno {

// The exception that is being handled, in the words that users get. To be called in a catch clause.
Error current_error();

}  // namespace inferno
