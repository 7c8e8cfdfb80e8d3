// Continuous batching. One thread owns the model, the cache and the scheduler; other threads send it requests
// and read token streams.
#pragma once

#include <memory>

#include "engine/engine_options.h"
#include "engine/request.h"
#include "engine/token_stream.h"
#include "model/decoder.h"

namespace inferno {

class Engine {
 public:
  // Allocates the cache and everything a step needs; nothing is allocated later. Error{io} if memory does not
  // suffice.
  Engine(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder, EngineOptions options);
  ~Engine();  // ends every stream with a Failed event, then joins
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Thread-safe. Error{invalid_request} with the numbers for a prompt that can never fit or settings out of
  // range, Error{overloaded} if the queue is full; later failures arrive as a Failed event.
  std::shared_ptr<TokenStream> submit(GenerationRequest request);

  EngineStats stats() const;  // thread-safe, a snapshot
  int context() const;        // tokens that prompt and answer together may have
  bool healthy() const;       // thread-safe; false after a device error, then submit throws Error{device}

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferno
