// `generate --batch`: a file of requests, one JSON object per line, many of which run concurrently.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/json.h"
#include "service/answer.h"
#include "service/request_fields.h"
#include "service/text_model.h"

namespace inferno {

struct BatchLine {
  int number = 0;  // in the file, from 1
  Json id;         // the line's "id" or "custom_id"; null if it has none
  TextRequest request;
  std::string error;  // why the line is not a request; empty if it is one
};

// Blank lines are skipped. Never throws: an invalid line has an `error`.
std::vector<BatchLine> parse_batch(std::string_view text, const RequestDefaults& defaults);

struct BatchOutcome {
  std::size_t written = 0;  // results
  std::size_t failed = 0;   // results that are errors
  bool cancelled = false;
};

struct BatchCallbacks {
  // Gets the results in the order of the file, each as soon as all before it are complete. Returns false to
  // end the batch because its reader is gone.
  std::function<bool(const Json& result)> write;
  IsCancelled is_cancelled;
  std::function<void(std::size_t results, std::size_t tokens)> progress = {};  // may be empty
};

// Keeps up to twice `parallel` requests submitted, so that the engine always has one to admit. A line that
// fails gives {"error": …} and does not affect the others. After a cancellation the running requests are
// written with the text generated so far, and no further ones are submitted.
BatchOutcome run_batch(const TextModel& model, std::vector<BatchLine> lines, int parallel,
                       const BatchCallbacks& callbacks);

}  // namespace inferno
