#include "engine/pending_constraint.h"

#include <atomic>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/start_threads.h"

namespace inferno {

// The results are written before `is_ready` is set, and never after.
struct PendingConstraint::State {
  std::stop_source stop;
  std::unique_ptr<const Constraint> compiled;
  std::exception_ptr failure;
  std::atomic<bool> is_ready = false;

  void set_ready() {
    is_ready.store(true);
    is_ready.notify_all();
  }

  void run(const ConstraintCompiler::Compile& compile) {
    try {
      if (stop.stop_requested()) fail(ErrorKind::invalid_request, "the request was cancelled");
      compiled = compile(stop.get_token());
      expects(compiled != nullptr, "compiling gives a constraint or throws");
    } catch (...) {
      compiled.reset();
      failure = std::current_exception();
    }
    set_ready();
  }
};

PendingConstraint::PendingConstraint(std::unique_ptr<const Constraint> compiled)
    : state_(std::make_shared<State>()) {
  state_->compiled = std::move(compiled);
  state_->set_ready();
}

PendingConstraint::PendingConstraint(std::shared_ptr<State> state) : state_(std::move(state)) {}

PendingConstraint::~PendingConstraint() {
  cancel();
}

bool PendingConstraint::is_ready() const {
  return state_->is_ready.load();
}

void PendingConstraint::wait() const {
  state_->is_ready.wait(false);
}

const Constraint& PendingConstraint::get() const {
  expects(is_ready(), "a constraint is used after it was compiled");
  if (state_->failure) std::rethrow_exception(state_->failure);
  return *state_->compiled;
}

void PendingConstraint::cancel() {
  state_->stop.request_stop();
}

ConstraintCompiler::ConstraintCompiler(int threads) : current_(static_cast<std::size_t>(threads)) {
  expects(threads > 0, "a compiler has a thread");
  start_threads(threads_, threads, [this](int worker) { serve(worker); }, [this] { stop(); });
}

ConstraintCompiler::~ConstraintCompiler() {
  stop();
}

void ConstraintCompiler::stop() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const Task& task : tasks_) task.state->stop.request_stop();
    for (const auto& state : current_) {
      if (state) state->stop.request_stop();
    }
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<PendingConstraint> ConstraintCompiler::compile(Compile compile) {
  auto state = std::make_shared<PendingConstraint::State>();
  std::shared_ptr<PendingConstraint> pending(new PendingConstraint(state));
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(compile), std::move(state)});
  }
  arrived_.notify_one();
  return pending;
}

// Tasks that are left when the compiler is closed are run too: they were cancelled and end at once.
void ConstraintCompiler::serve(int worker) {
  std::shared_ptr<PendingConstraint::State>& current = current_[static_cast<std::size_t>(worker)];
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    current = task.state;
    lock.unlock();
    task.state->run(task.compile);
    task.compile = nullptr;  // what it holds is freed without the lock
    lock.lock();
    current.reset();
  }
}

}  // namespace inferno
