#include "server/shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/start_threads.h"
#include "server/api_error.h"

namespace inferno::server {
namespace {

constexpr int request_threads = 2, event_threads = 2;
constexpr std::chrono::milliseconds time_check{250};  // between two looks at the time of requests
// A step takes milliseconds; the longest prompt chunk on a slow CPU takes a few
// seconds.
constexpr double max_heartbeat_age = 30;
constexpr std::size_t max_name = 256;  // bytes of a model's name

}  // namespace

// Threads that run tasks in the order given.
class Shared::Workers {
 public:
  explicit Workers(int threads) {
    start_threads(threads_, threads, [this](int) { work(); }, [this] { stop(); });
  }
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stops_ || !tasks_.empty(); });
      if (stops_) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      // Without the lock: a task may own the last reference to a call, whose end writes a line of the log.
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

Shared::Shared(ServerSettings settings, LogOptions log)
    : settings_(std::move(settings)),
      log_(std::move(log)),
      started_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      requests_(std::make_unique<Workers>(request_threads)),
      events_(std::make_unique<Workers>(event_threads)),
      clock_([this](const std::stop_token& stop) { watch_time(stop); }) {}

// Calls and generations refer to this object, so they end first: no new ones, then those that run.
Shared::~Shared() {
  refuse_requests();
  requests_.reset();
  abort_generations("the server was stopped");
  const auto is_idle = [this] {
    const std::lock_guard lock(mutex_);
    return generations_.empty();
  };
  while (!is_idle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  events_.reset();
}

void Shared::model_loaded(std::shared_ptr<const TextModel> model) {
  {
    const std::lock_guard lock(mutex_);
    model_ = std::move(model);
  }
  State loading = State::loading;
  state_.compare_exchange_strong(loading, State::ready);
}

void Shared::announce_stop() {
  state_.store(State::stopping);
}

std::shared_ptr<const TextModel> Shared::model_if_loaded() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

std::shared_ptr<const TextModel> Shared::model() const {
  if (refuses_.load()) throw unavailable("the server is shutting down: send the request to another one");
  auto model = model_if_loaded();
  if (!model)
    throw unavailable(
        "Loading model: try again in a moment (GET /health tells "
        "when it is ready)");
  return model;
}

std::string Shared::problem() const {
  switch (state_.load()) {
    case State::loading: return "Loading model";
    case State::stopping: return "Shutting down";
    case State::ready: break;
  }
  return engine_problem();
}

std::string Shared::engine_problem() const {
  const auto model = model_if_loaded();
  if (model == nullptr) return {};
  const Engine& engine = model->engine();
  if (!engine.healthy()) return "The engine has failed";
  if (engine.heartbeat_age() > max_heartbeat_age) return "The engine does not answer";
  return {};
}

std::string Shared::served_name(const Json* name) const {
  const auto& names = settings_.names;
  if (name == nullptr) return names.front();
  if (!name->is_string()) throw invalid("model: expected a string", "model");
  const auto wanted = name->get<std::string>();
  const auto has = [&](const std::string& text) { return std::ranges::find(names, text) != names.end(); };
  if (wanted.empty()) return names.front();
  // A name is repeated in every chunk of an answer.
  if (has(wanted) || (has("*") && wanted.size() <= max_name)) return wanted;
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  ApiError error(
      404, "invalid_request_error",
      fmt::format("model \"{}\" is not served here; this server has: {}", wanted.substr(0, 200), known));
  error.param = "model";
  error.code = "model_not_found";
  throw error;
}

void Shared::run(std::function<void()> task) {
  requests_->add(std::move(task));
}

void Shared::run_soon(std::function<void()> task) {
  events_->add(std::move(task));
}

void Shared::add(const std::shared_ptr<Running>& generation) {
  const std::lock_guard lock(mutex_);
  generations_[generation.get()] = generation;
}

void Shared::remove(const Running* generation) {
  const std::lock_guard lock(mutex_);
  generations_.erase(generation);
}

std::vector<std::shared_ptr<Running>> Shared::running() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Running>> running;
  for (const auto& [ignored, generation] : generations_) {
    if (auto alive = generation.lock()) running.push_back(std::move(alive));
  }
  return running;
}

void Shared::abort_generations(const std::string& message) {
  for (const auto& generation : running()) generation->abort(message);
}

void Shared::watch_time(const std::stop_token& stop) {
  std::mutex unused;
  std::unique_lock lock(unused);
  while (!stops_.wait_for(lock, stop, time_check, [] { return false; }) && !stop.stop_requested()) {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& generation : running()) generation->check_time(now);
  }
}

}  // namespace inferno::server
