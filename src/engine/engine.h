// Continuous batching. One thread owns the model, the cache and the scheduler; other threads send it requests
// and read token streams.
#pragma once

#include <functional>
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
  // range, Error{overloaded} if the queue is full and has a request of this client, unless the request may
  // exceed it; later failures arrive as a Failed event. `wake` is called on the engine's thread once
  // for each event, perhaps before submit() returns; for tokens, when all requests have theirs of the same
  // step (the end of an answer may come earlier). The engine waits for it, so it should be short.
  std::shared_ptr<TokenStream> submit(GenerationRequest request, std::function<void()> wake = {});

  // Thread-safe. Error{overloaded} if submit() would refuse any request of this client now: a caller can ask
  // before it spends time on preparing one.
  void check_room(const std::string& client) const;

  // Thread-safe. Runs `work` on the engine's thread, between two steps, and waits for it: for what needs the
  // model itself, such as logits. Answers wait meanwhile. Throws what `work` throws, Error{device} if the
  // engine ends first. Must not be called on the engine's thread.
  using Work = std::function<void(Decoder& decoder, Backend& backend)>;
  void run_between_steps(Work work);

  // Thread-safe. Forgets the cached prefixes that no request uses, between two steps, and waits for that.
  // Throws as run_between_steps() does, and must not be called on the engine's thread either.
  void drop_idle_prefixes();

  EngineStats stats() const;  // thread-safe, a snapshot
  RequestLimits limits() const;
  int context() const;   // tokens that prompt and answer together may have
  bool healthy() const;  // thread-safe; false after a device error, then submit throws Error{device}
  // Thread-safe. Seconds since the engine's thread last completed a step; 0 while it waits for requests. An
  // age far above the time of a step means that the device is stuck.
  double heartbeat_age() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferno
