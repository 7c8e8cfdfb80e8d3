// Writes the answer of a request to the Responses API: one object, or a stream of events that ends with it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/generation.h"

namespace inferno::server {

struct ResponseOptions {
  // The response as it is before anything was generated: {"id": "resp_…", "object": "response", …}, without
  // "usage".
  Json response;
  bool streams = false;
  bool include_reasoning = true;
  bool single_call = false;  // further function calls are left out
  bool logprobs = false;
  const Tokenizer* tokenizer = nullptr;  // outlives the writer
};

// Also sets the events with which a stream of `call` ends if it fails.
std::unique_ptr<AnswerWriter> make_response_writer(ResponseOptions options, Call& call);

}  // namespace inferno::server
