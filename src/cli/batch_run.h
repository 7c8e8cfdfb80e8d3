// Runs the lines of a batch file through the engine, many at once, and hands the results back in order.
#pragma once

#include <functional>
#include <vector>

#include "base/signals.h"
#include "cli/batch_file.h"
#include "cli/text_model.h"

namespace inferno {

struct BatchOutcome {
  std::size_t written = 0;  // results
  std::size_t failed = 0;   // of them with an error
  bool interrupted = false;
};

// Gets the result of each line in the order of the file, as soon as those before it are there; false when
// nobody reads any more.
using WriteResult = std::function<bool(const Json& result)>;

// `parallel` requests are in the engine's hands at a time, and some more wait for their turn. A line that
// fails gives {"error": …} and does not touch the others. After an interrupt, what was begun is written as
// far as it came, and the rest is not begun.
BatchOutcome run_batch(const TextModel& model, std::vector<BatchLine> lines, int parallel,
                       const SignalWatcher& interrupt, const WriteResult& write);

}  // namespace inferno
