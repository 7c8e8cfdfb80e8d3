#include "server/generation.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/seconds.h"
#include "chat/constraint/reply_constraint.h"
#include "engine/pending_constraint.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

using Clock = std::chrono::steady_clock;

// Log probabilities, alternatives included, in a response that is not streamed: until it is sent, each takes
// about a kilobyte.
constexpr std::size_t max_logprobs = 262'144;

std::size_t logprobs_in(const Sampled& sampled) {
  std::size_t count = 1 + sampled.alternatives.size();
  if (sampled.prompt) {
    for (const Sampled& token : *sampled.prompt) count += 1 + token.alternatives.size();
  }
  return count;
}

// Events that pump() takes from one prompt before other calls have their turn.
constexpr int max_events_at_once = 64;

// One call's answers. Events wake it on the engine's thread; pump() reads them on a worker, never twice at
// once. It keeps itself alive until the last answer has ended.
class Generation final : public Running, public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<Call> call, std::shared_ptr<const TextModel> model, GenerationPlan plan)
      : call_(std::move(call)),
        model_(std::move(model)),
        writer_(std::move(plan.writer)),
        streams_(plan.streams),
        plan_(std::move(plan.prompts)) {}

  void start();
  void abort(const std::string& message) override;
  void check_time(Clock::time_point now) override;

 private:
  // How the threads of the engine and of the transport reach a generation. They never own it: its destructor
  // writes to the log, and may destroy the model and with it the engine.
  class Handle {
   public:
    explicit Handle(Generation* generation) : generation_(generation) {}
    void wake() {
      const std::lock_guard lock(mutex_);
      if (generation_ != nullptr) generation_->wake();
    }
    void client_left() {
      const std::lock_guard lock(mutex_);
      if (generation_ != nullptr) generation_->client_left();
    }
    void release() {  // the generation has ended
      const std::lock_guard lock(mutex_);
      generation_ = nullptr;
    }

   private:
    std::mutex mutex_;
    Generation* generation_;
  };

  struct Reply {
    AnswerReader reader;
    Clock::time_point last_token = {};
    bool is_over = false;
  };
  struct Prompt {
    std::shared_ptr<TokenStream> stream;
    std::size_t first = 0;  // number of its first answer
    std::vector<Reply> replies;
  };

  void submit();
  void submit_more();
  std::size_t answers_to_come() const;
  void wake();
  void client_left();
  void run_pump();
  void pump();
  bool drain(Prompt& prompt);
  void take(Prompt& prompt, const Event& event);
  std::optional<ApiError> refused_constraint(const Prompt& prompt) const;
  bool keeps_logprobs() const;
  void count_token(Reply& reply);
  void end_late();
  ApiError out_of_time() const;
  void finish(Prompt& prompt, std::size_t choice);
  void finish_all();
  void fail(const ApiError& error);
  void cancel_all();
  void end();
  int choice_of(const Event& event) const;

  std::shared_ptr<Call> call_;
  std::shared_ptr<const TextModel> model_;
  std::unique_ptr<AnswerWriter> writer_;
  bool streams_;
  std::vector<PreparedRequest> plan_;
  std::vector<Prompt> prompts_;  // those of plan_ that were submitted
  std::vector<Answer> results_;
  std::size_t open_ = 0;      // answers that have not ended
  std::size_t logprobs_ = 0;  // that the response will have, if it is not streamed
  const Clock::time_point start_ = call_->start();
  bool is_over_ = false;

  // Events since pump() last looked. Above 0 from the beginning, because start() calls the first pump().
  std::atomic<int> wakes_ = 1;
  std::atomic<bool> is_gone_ = false;
  enum class Time { enough, late, very_late };
  std::atomic<Time> time_ = Time::enough;
  std::mutex mutex_;  // guards the two below
  std::optional<std::string> abort_message_;
  std::vector<std::shared_ptr<TokenStream>> submitted_;
  const std::shared_ptr<Handle> handle_ = std::make_shared<Handle>(this);
  std::shared_ptr<Generation> self_;
};

void Generation::start() {
  for (const PreparedRequest& prepared : plan_) {
    open_ += static_cast<std::size_t>(prepared.generation.choices);
  }
  results_.resize(open_);
  submit();
  self_ = shared_from_this();
  call_->shared().add(self_);
  if (streams_) call_->begin_stream();
  call_->on_disconnect([handle = handle_] { handle->client_left(); });
  // Now others may use the call and the prompts; pump() submits those that are left.
  run_pump();
}

void Generation::submit() {
  PreparedRequest& prepared = plan_[prompts_.size()];
  Prompt prompt;
  if (!prompts_.empty()) prompt.first = prompts_.back().first + prompts_.back().replies.size();
  // If it is refused for now, its parsers are still needed.
  GenerationRequest request = prepared.generation;
  prompt.stream = model_->engine().submit(std::move(request), [handle = handle_] { handle->wake(); });
  const int choices = prepared.generation.choices;
  prompt.replies.reserve(static_cast<std::size_t>(choices));
  for (int choice = 0; choice < choices; ++choice) {
    prompt.replies.push_back({.reader = AnswerReader(model_->tokenizer(), prepared, choice)});
  }
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(prompt.stream);
  }
  if (is_gone_.load()) prompt.stream->cancel();
  prompts_.push_back(std::move(prompt));
}

// The queue had room for the first prompt; the others follow as it has room for them, so that a call may have
// more prompts than the queue has places.
void Generation::submit_more() {
  while (!is_over_ && prompts_.size() < plan_.size()) {
    GenerationRequest& next = plan_[prompts_.size()].generation;
    // One may wait beyond the limit: a call that was begun is not refused.
    next.exceeds_queue = open_ == answers_to_come();
    try {
      submit();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::overloaded) throw;
      return;
    }
  }
}

// Answers to prompts that were not submitted yet.
std::size_t Generation::answers_to_come() const {
  const Prompt& last = prompts_.back();
  return results_.size() - (last.first + last.replies.size());
}

void Generation::wake() {
  if (wakes_.fetch_add(1) == 0) run_pump();  // otherwise pump() is queued or running and will look again
}

void Generation::client_left() {
  is_gone_.store(true);
  // At once, on the thread that noticed: the engine looks before its next step.
  cancel_all();
  wake();
}

void Generation::run_pump() {
  call_->shared().run_soon([self = shared_from_this()] { self->pump(); });
}

void Generation::pump() {
  const int seen = wakes_.load();
  std::optional<std::string> aborted;
  {
    const std::lock_guard lock(mutex_);
    aborted = abort_message_;
  }
  try {
    if (aborted) fail(ApiError(503, "unavailable_error", *aborted));
    if (time_.load() != Time::enough) end_late();
    bool has_more = false;
    for (Prompt& prompt : prompts_) has_more = drain(prompt) || has_more;
    if (has_more) wakes_.fetch_add(1);
    const bool is_gone = is_gone_.load();
    if (!is_gone) submit_more();
    if (!is_over_ && open_ == (is_gone ? answers_to_come() : 0)) finish_all();
  } catch (const Error& problem) {
    const ApiError error = api_error_of(problem);
    if (error.status >= 500) call_->shared().log().message(LogLevel::error, problem.what());
    fail(error);
  } catch (const std::exception& problem) {
    call_->shared().log().message(LogLevel::error, problem.what());
    fail(ApiError(500, "server_error", "internal error: the server's log has the details"));
  }
  if (is_over_) return;  // wakes_ stays above 0, so that nothing calls it again
  // After the calls that are waiting, so that one that always has events does not hold them up.
  if (wakes_.fetch_sub(seen) != seen) run_pump();
}

// True if there may be more events.
bool Generation::drain(Prompt& prompt) {
  for (int i = 0; i < max_events_at_once && !is_over_; ++i) {
    const auto event = prompt.stream->next(std::chrono::milliseconds(0));
    if (!event) return false;
    take(prompt, *event);
  }
  return !is_over_;
}

int Generation::choice_of(const Event& event) const {
  if (const auto* sampled = std::get_if<Sampled>(&event)) return sampled->choice;
  if (const auto* finished = std::get_if<Finished>(&event)) return finished->choice;
  return 0;
}

void Generation::take(Prompt& prompt, const Event& event) {
  if (const auto* failed = std::get_if<Failed>(&event)) {
    if (const auto refused = refused_constraint(prompt)) return fail(*refused);
    const bool is_healthy = model_->engine().healthy();
    call_->shared().log().message(LogLevel::error, failed->message);
    // The cause of an engine's failure names devices and source files: it is for our log.
    ApiError error(is_healthy ? 500 : 503, "server_error",
                   is_healthy ? failed->message : "the engine has failed: the server's log has the details");
    error.code = is_healthy ? "generation_failed" : "engine_failed";
    return fail(error);
  }
  const auto* sampled = std::get_if<Sampled>(&event);
  if (sampled != nullptr && keeps_logprobs()) logprobs_ += logprobs_in(*sampled);
  if (logprobs_ > max_logprobs) {
    return fail(
        invalid(fmt::format("logprobs: more than {} in one response (stream it, or ask for fewer tokens, "
                            "choices or alternatives)",
                            max_logprobs),
                "logprobs"));
  }
  const auto choice = static_cast<std::size_t>(choice_of(event));
  Reply& reply = prompt.replies[choice];
  if (reply.is_over) return;
  const std::size_t tokens = reply.reader.answer().tokens.size();
  const std::vector<ReplyPart> parts = reply.reader.take(event);
  // What was sampled after a stop string is not part of the answer.
  if (reply.reader.answer().tokens.size() > tokens) count_token(reply);
  if (!parts.empty()) writer_->write(*call_, prompt.first + choice, parts, reply.reader);
  if (reply.reader.is_over()) return finish(prompt, choice);
  if (!reply.reader.is_stopped()) return;
  if (prompt.replies.size() == 1) {
    prompt.stream->cancel();
  } else {
    prompt.stream->cancel(static_cast<int>(choice));
  }
}

// Why the constraint of a prompt was not compiled; nullopt if it was, or there is none.
std::optional<ApiError> Generation::refused_constraint(const Prompt& prompt) const {
  const auto& constraint = plan_[static_cast<std::size_t>(&prompt - prompts_.data())].generation.constraint;
  if (!constraint || !constraint->is_ready()) return std::nullopt;
  try {
    constraint->get();
  } catch (const ConstraintError& error) {
    return invalid(error.what(), error.param());
  } catch (const Error& error) {
    return api_error_of(error);
  }
  return std::nullopt;
}

bool Generation::keeps_logprobs() const {
  const GenerationRequest& request = plan_.front().generation;
  return !streams_ && (request.sampling.logprobs || request.prompt_logprobs);
}

void Generation::count_token(Reply& reply) {
  const auto now = Clock::now();
  Metrics& metrics = call_->shared().metrics();
  if (reply.last_token == Clock::time_point{}) {
    const double seconds = seconds_between(start_, now);
    metrics.first_token(seconds);
    auto& first = call_->usage().first_token_seconds;
    if (first == 0) first = seconds;
  } else {
    metrics.token_gap(seconds_between(reply.last_token, now));
  }
  reply.last_token = now;
}

void Generation::finish(Prompt& prompt, std::size_t choice) {
  Reply& reply = prompt.replies[choice];
  reply.is_over = true;
  Answer& answer = reply.reader.answer();
  CallUsage& usage = call_->usage();
  if (choice == 0) {
    usage.prompt_tokens += answer.finished.prompt_tokens;
    usage.cached_tokens += answer.finished.cached_tokens;
  }
  usage.generated_tokens += static_cast<int>(answer.tokens.size());
  usage.queue_seconds = std::max(usage.queue_seconds, answer.finished.queue_seconds);
  Metrics& metrics = call_->shared().metrics();
  metrics.answer(answer, seconds_since(start_));
  if (answer.is_malformed) metrics.parse_fault();
  if (!is_gone_.load()) {
    if (answer.finish_reason == "cancelled") {
      answer.finish_reason = "length";
      call_->warn(fmt::format("the answer was cut because {}", out_of_time().message));
    }
    writer_->finish(*call_, prompt.first + choice, answer);
  }
  results_[prompt.first + choice] = std::move(answer);
  --open_;
}

void Generation::finish_all() {
  if (is_gone_.load()) {
    call_->was_cancelled();
    call_->shared().metrics().cancelled_by_disconnect();
  } else {
    writer_->finish_all(*call_, results_);
  }
  end();
}

void Generation::fail(const ApiError& error) {
  if (is_over_) return;
  cancel_all();
  for (std::size_t answer = 0; answer < open_; ++answer) call_->shared().metrics().failed_answer();
  if (is_gone_.load()) call_->was_cancelled();
  call_->fail(error);
  end();
}

void Generation::abort(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    abort_message_ = message;
  }
  wake();
}

void Generation::check_time(Clock::time_point now) {
  // What was cancelled ends within a step, unless the engine is stuck.
  constexpr std::chrono::seconds patience{5};
  const auto limit = start_ + call_->shared().settings().max_request_time;
  if (now < limit) return;
  const Time time = now < limit + patience ? Time::late : Time::very_late;
  if (time_.exchange(time) != time) wake();
}

// Answers that have begun end with what they have; a call that still waits for one fails.
void Generation::end_late() {
  bool has_begun = time_.load() == Time::late && prompts_.size() == plan_.size();
  for (const Prompt& prompt : prompts_) {
    for (const Reply& reply : prompt.replies) {
      has_begun = has_begun && (reply.is_over || reply.last_token != Clock::time_point{});
    }
  }
  if (!has_begun) return fail(out_of_time());
  cancel_all();
}

ApiError Generation::out_of_time() const {
  const auto limit = call_->shared().settings().max_request_time;
  ApiError error(503, "unavailable_error",
                 fmt::format("the request did not end within {:g} s (--request-timeout)",
                             std::chrono::duration<double>(limit).count()));
  error.code = "request_timeout";
  error.retry_after = 1;
  return error;
}

void Generation::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : submitted_) stream->cancel();
}

void Generation::end() {
  is_over_ = true;
  handle_->release();
  call_->shared().remove(this);
  self_.reset();  // pump() holds a reference of its own
}

}  // namespace

void start_generation(std::shared_ptr<Call> call, std::shared_ptr<const TextModel> model,
                      GenerationPlan plan) {
  std::make_shared<Generation>(std::move(call), std::move(model), std::move(plan))->start();
}

}  // namespace inferno::server
