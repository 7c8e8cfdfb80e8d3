#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/mailbox.h"
#include "engine/engine_loop.h"
#include "engine/pending_constraint.h"

namespace inferno {
namespace {

// How often an engine without other work looks whether a constraint was compiled or its request cancelled.
constexpr std::chrono::microseconds constraint_patience(200);

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
  using Clock = std::chrono::steady_clock;

  Impl(std::unique_ptr<Backend> a_backend, std::unique_ptr<Decoder> a_decoder, const EngineOptions& wanted)
      : backend(std::move(a_backend)),
        decoder(std::move(a_decoder)),
        options(checked(wanted, *backend, decoder->limits())),
        plan(plan_cache(decoder->spec(), decoder->cache_types(),
                        {.sequences = options.max_sequences,
                         .step_tokens = options.max_step_tokens,
                         .block_size = options.block_size,
                         .max_bytes = options.cache_bytes},
                        decoder->limits().context, backend->info().free_bytes)),
        waiting(options.max_waiting, options.max_sequences),
        loop(*backend, *decoder, options, plan, waiting),
        snapshot(loop.stats()),
        thread([this] { run(); }) {}

  ~Impl() {
    mailbox.close();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Of borrow(), which waits for `done`. What failed belongs to the thread that waits, which alone frees it.
  struct Borrowing {
    std::function<void()> work;
    std::exception_ptr* failure;
    std::promise<void> done;
  };
  using Message = std::variant<Submission, Borrowing>;

  void take(Message message) {
    if (auto* submission = std::get_if<Submission>(&message)) return loop.accept(std::move(*submission));
    auto& borrowing = std::get<Borrowing>(message);
    try {
      borrowing.work();
    } catch (...) {
      *borrowing.failure = std::current_exception();
    }
    borrowing.done.set_value();
  }

  void run() {
    try {
      while (!mailbox.closed()) {
        for (Message& message : mailbox.drain()) take(std::move(message));
        const bool worked = loop.step();
        publish_stats();
        beat.store(Clock::now());
        if (worked) continue;
        if (loop.awaits_constraint()) {
          mailbox.wait_for(constraint_patience);
          continue;
        }
        idle.store(true);
        mailbox.wait();
        beat.store(Clock::now());
        idle.store(false);
      }
      stop("the engine was shut down");
    } catch (const std::exception& problem) {
      broken.store(true);
      stop(fmt::format("the engine failed: {}", problem.what()));
    }
  }

  // Runs `work` on the engine's thread.
  void borrow(std::function<void()> work) {
    std::exception_ptr failure;
    Borrowing borrowing = {std::move(work), &failure, {}};
    std::future<void> done = borrowing.done.get_future();
    if (!mailbox.post(std::move(borrowing))) fail(ErrorKind::device, "the engine is shutting down");
    done.get();
    if (failure) std::rethrow_exception(failure);
  }

  // No new requests after this point; waiting and running ones get a Failed event.
  void stop(const std::string& message) {
    mailbox.close();
    for (Message& left : mailbox.drain()) {
      if (auto* borrowing = std::get_if<Borrowing>(&left)) {
        *borrowing->failure = std::make_exception_ptr(Error(ErrorKind::device, message));
        borrowing->done.set_value();
        continue;
      }
      auto& submission = std::get<Submission>(left);
      waiting.remove(submission.request.client, submission.request.choices);
      if (submission.request.constraint) submission.request.constraint->cancel();
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

  [[noreturn]] void refuse() const {
    fail(ErrorKind::overloaded, fmt::format("too many requests: {} are already waiting", options.max_waiting),
         {.why = {}, .next = "try again in a moment"});
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
  WaitingCount waiting;
  std::atomic<bool> broken = false;
  std::atomic<bool> idle = false;                      // the thread waits for requests
  std::atomic<Clock::time_point> beat = Clock::now();  // when it last completed a step or stopped waiting
  Mailbox<Message> mailbox;
  mutable std::mutex mutex;  // guards random and snapshot
  std::mt19937_64 random{std::random_device{}()};
  EngineLoop loop;  // used by `thread` alone once it runs
  EngineStats snapshot;
  std::thread thread;
};

Engine::Engine(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(backend), std::move(decoder), options)) {}

Engine::~Engine() = default;

std::shared_ptr<TokenStream> Engine::submit(GenerationRequest request, std::function<void()> wake) {
  if (!healthy()) {
    fail(ErrorKind::device, "the engine has failed and accepts no more requests",
         {.why = {}, .next = "restart it; the requests that were running report the cause"});
  }
  check_request(request, impl_->request_limits());
  const std::string client = request.client;
  const int choices = request.choices;
  const QueueLimit limit = request.exceeds_queue ? QueueLimit::unbounded : QueueLimit::bounded;
  if (!impl_->waiting.add(client, choices, limit)) impl_->refuse();
  auto stream = std::make_shared<TokenStream>(choices, std::move(wake));
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : impl_->draw_seed();
  Submission submission = {std::move(request), seed, stream, std::chrono::steady_clock::now()};
  if (!impl_->mailbox.post(std::move(submission))) {
    impl_->waiting.remove(client, choices);
    fail(ErrorKind::device, "the engine is shutting down");
  }
  return stream;
}

void Engine::run_between_steps(Work work) {
  impl_->borrow([this, work = std::move(work)] { work(*impl_->decoder, *impl_->backend); });
}

void Engine::drop_idle_prefixes() {
  impl_->borrow([this] {
    impl_->loop.drop_idle_prefixes();
    impl_->publish_stats();
  });
}

void Engine::check_room(const std::string& client) const {
  if (!impl_->waiting.has_room(client)) impl_->refuse();
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(impl_->mutex);
  EngineStats out = impl_->snapshot;
  out.waiting = impl_->waiting.total();
  return out;
}

RequestLimits Engine::limits() const {
  return impl_->request_limits();
}

int Engine::context() const {
  return impl_->plan.context;
}

double Engine::heartbeat_age() const {
  if (impl_->idle.load()) return 0;
  return std::chrono::duration<double>(Impl::Clock::now() - impl_->beat.load()).count();
}

bool Engine::healthy() const {
  return !impl_->broken.load();
}

}  // namespace inferno
