#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/mailbox.h"
#include "engine/engine_loop.h"

namespace inferno {
namespace {

EngineOptions checked(EngineOptions options, Backend& backend, const DecoderLimits& limits) {
  options.max_sequences = std::min(options.max_sequences, limits.max_logit_rows);
  options.max_step_tokens = std::min(options.max_step_tokens, limits.max_tokens);
  // A decode is a row: all running sequences must fit a step.
  options.max_sequences = std::min(options.max_sequences, options.max_step_tokens);
  options.max_prompt_tokens = std::min(options.max_prompt_tokens, options.max_step_tokens);
  for (const auto& [name, value] : {std::pair{"max_sequences", options.max_sequences},
                                    {"max_step_tokens", options.max_step_tokens},
                                    {"max_prompt_tokens", options.max_prompt_tokens},
                                    {"max_waiting", options.max_waiting},
                                    {"block_size", options.block_size}}) {
    if (value < 1) fail(ErrorKind::invalid_request, fmt::format("{} {}: expected at least 1", name, value));
  }
  if (options.deterministic) {
    if (const auto reason = backend.refuses_determinism()) {
      fail(ErrorKind::unsupported, fmt::format("--deterministic: {}", *reason));
    }
  }
  return options;
}

}  // namespace

struct Engine::Impl {
  Impl(std::unique_ptr<Backend> a_backend, std::unique_ptr<Decoder> a_decoder, const EngineOptions& wanted)
      : backend(std::move(a_backend)),
        decoder(std::move(a_decoder)),
        options(checked(wanted, *backend, decoder->limits())),
        plan(plan_cache(decoder->spec(), backend->cache_type(),
                        {.sequences = options.max_sequences,
                         .step_tokens = options.max_step_tokens,
                         .block_size = options.block_size,
                         .max_bytes = options.cache_bytes},
                        decoder->limits().context, backend->info().free_bytes)),
        loop(*backend, *decoder, options, plan, pending),
        snapshot(loop.stats()),
        thread([this] { run(); }) {}

  ~Impl() {
    mailbox.close();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run() {
    try {
      while (!mailbox.closed()) {
        for (Submission& submission : mailbox.drain()) loop.accept(std::move(submission));
        const bool worked = loop.step();
        publish_stats();
        if (!worked) mailbox.wait();
      }
      stop("the engine was shut down");
    } catch (const std::exception& problem) {
      broken.store(true);
      stop(fmt::format("the engine failed: {}", problem.what()));
    }
  }

  // No new requests after this point; waiting and running ones get a Failed event.
  void stop(const std::string& message) {
    mailbox.close();
    for (Submission& submission : mailbox.drain()) {
      pending.fetch_sub(1, std::memory_order_relaxed);
      submission.stream->publish(Failed{message});
    }
    loop.fail_all(message);
    publish_stats();
  }

  void publish_stats() {
    const EngineStats now = loop.stats();
    const std::lock_guard lock(mutex);
    snapshot = now;
  }

  std::uint64_t draw_seed() {
    const std::lock_guard lock(mutex);
    return random();
  }

  RequestLimits request_limits() const {
    return {.vocab = decoder->spec().vocab,
            .context = plan.context,
            .model_context = decoder->spec().context,
            .max_logprobs = options.max_logprobs};
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Decoder> decoder;
  EngineOptions options;
  CachePlan plan;
  std::atomic<int> pending = 0;
  std::atomic<bool> broken = false;
  Mailbox<Submission> mailbox;
  mutable std::mutex mutex;  // guards random and snapshot
  std::mt19937_64 random{std::random_device{}()};
  EngineLoop loop;  // used by `thread` alone once it runs
  EngineStats snapshot;
  std::thread thread;
};

Engine::Engine(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(backend), std::move(decoder), options)) {}

Engine::~Engine() = default;

std::shared_ptr<TokenStream> Engine::submit(GenerationRequest request) {
  if (!healthy()) {
    fail(ErrorKind::device, "the engine has failed and accepts no more requests",
         {.why = {}, .next = "restart it; the requests that were running report the cause"});
  }
  check_request(request, impl_->request_limits());
  if (impl_->pending.fetch_add(1, std::memory_order_relaxed) >= impl_->options.max_waiting) {
    impl_->pending.fetch_sub(1, std::memory_order_relaxed);
    fail(ErrorKind::overloaded,
         fmt::format("too many requests: {} are already waiting", impl_->options.max_waiting),
         {.why = {}, .next = "try again in a moment"});
  }
  auto stream = std::make_shared<TokenStream>(request.choices);
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : impl_->draw_seed();
  Submission submission = {std::move(request), seed, stream, std::chrono::steady_clock::now()};
  if (!impl_->mailbox.post(std::move(submission))) {
    impl_->pending.fetch_sub(1, std::memory_order_relaxed);
    fail(ErrorKind::device, "the engine is shutting down");
  }
  return stream;
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(impl_->mutex);
  EngineStats out = impl_->snapshot;
  out.waiting = impl_->pending.load(std::memory_order_relaxed);
  return out;
}

int Engine::context() const {
  return impl_->plan.context;
}

bool Engine::healthy() const {
  return !impl_->broken.load();
}

}  // namespace inferno
