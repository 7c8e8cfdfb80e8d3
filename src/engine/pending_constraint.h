// A constraint that may still be compiled on another thread while its request waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/constraint.h"

namespace inferno {

// Shared by the request and the code that reports why it failed. All functions are thread-safe.
class PendingConstraint {
 public:
  explicit PendingConstraint(std::unique_ptr<const Constraint> compiled);
  ~PendingConstraint();  // cancels; does not wait
  PendingConstraint(const PendingConstraint&) = delete;
  PendingConstraint& operator=(const PendingConstraint&) = delete;

  // Whether compiling has ended, in whatever way.
  bool is_ready() const;
  void wait() const;  // until is_ready()
  // For is_ready(). Each answer begins with a fork of it. Throws what compiling threw, Error{invalid_request}
  // if it was cancelled before it began.
  const Constraint& get() const;
  // Asks the compiling thread to stop; no effect once it has ended. Does not wait.
  void cancel();

 private:
  friend class ConstraintCompiler;
  struct State;
  explicit PendingConstraint(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // the compiling thread has the other reference
};

// Threads that compile constraints. Neither the engine nor the thread that submits a request waits for them.
class ConstraintCompiler {
 public:
  // Runs on one of the threads. Should look at the token often and throw when a stop is requested.
  using Compile = std::function<std::unique_ptr<const Constraint>(const std::stop_token&)>;

  // One slow constraint delays the others only if there are `threads` of them.
  explicit ConstraintCompiler(int threads = 4);
  ~ConstraintCompiler();  // cancels everything, then joins
  ConstraintCompiler(const ConstraintCompiler&) = delete;
  ConstraintCompiler& operator=(const ConstraintCompiler&) = delete;

  // Thread-safe.
  std::shared_ptr<PendingConstraint> compile(Compile compile);

 private:
  struct Task {
    Compile compile;
    std::shared_ptr<PendingConstraint::State> state;
  };
  void serve(int worker);
  void stop();

  std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::deque<Task> tasks_;
  std::vector<std::shared_ptr<PendingConstraint::State>> current_;  // of each thread; may be null
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace inferno
