#include "cli/batch_run.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/terminal/progress_bar.h"

namespace inferno {
namespace {

// Which requests have news. The engine's thread puts, the one that writes results takes.
class Bell {
 public:
  void ring(std::size_t request) {
    {
      const std::lock_guard lock(mutex_);
      ringing_.push_back(request);
    }
    rung_.notify_one();
  }

  std::optional<std::size_t> wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!rung_.wait_for(lock, patience, [&] { return !ringing_.empty(); })) return std::nullopt;
    const std::size_t request = ringing_.front();
    ringing_.pop_front();
    return request;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  std::deque<std::size_t> ringing_;
};

struct Running {
  std::shared_ptr<TokenStream> stream;
  std::unique_ptr<AnswerReader> reader;
  bool with_logprobs = false;
};

class BatchRun {
 public:
  BatchRun(const TextModel& model, std::vector<BatchLine> lines, int parallel, const WriteResult& write)
      : model_(model),
        lines_(std::move(lines)),
        max_running_(static_cast<std::size_t>(parallel) * 2),
        write_(write),
        running_(lines_.size()),
        results_(lines_.size()),
        bell_(std::make_shared<Bell>()),
        bar_(lines_.size()) {}

  BatchOutcome run(const SignalWatcher& interrupt) {
    while (is_wanted_ && written_ < lines_.size()) {
      if (interrupt.received() != 0 && !outcome_.interrupted) stop();
      while (!outcome_.interrupted && begun_ < lines_.size() && active_ < max_running_) begin(begun_++);
      write_ready();
      if (active_ == 0 && outcome_.interrupted) break;
      if (active_ == 0) continue;
      if (const auto request = bell_->wait(std::chrono::milliseconds(50))) listen(*request);
      bar_.show(written_, tokens_);
    }
    if (!is_wanted_) stop();
    outcome_.written = written_;
    return outcome_;
  }

 private:
  void begin(std::size_t at) {
    const BatchLine& line = lines_[at];
    if (!line.error.empty()) {
      refuse(at, line.error);
      return;
    }
    try {
      PreparedRequest request = model_.prepare(line.request);
      Running& running = running_[at];
      running.with_logprobs = request.generation.sampling.logprobs.has_value();
      running.reader = std::make_unique<AnswerReader>(model_.tokenizer(), request);
      running.stream = model_.engine().submit(std::move(request.generation));
      ++active_;
      // Not this object: the engine may ring once more while everything is being torn down.
      running.stream->on_event([bell = bell_, at] { bell->ring(at); });
    } catch (const Error& error) {
      // A line that cannot be answered is a result of its own; a broken device is the end.
      if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::internal) throw;
      refuse(at, error.what());
    }
  }

  void listen(std::size_t at) {
    Running& running = running_[at];
    if (!running.stream) return;  // rung more often than there was news
    while (const auto event = running.stream->next(std::chrono::milliseconds(0))) {
      const std::size_t before = running.reader->answer().tokens.size();
      running.reader->take(*event);
      tokens_ += running.reader->answer().tokens.size() - before;
      if (running.reader->is_stopped()) running.stream->cancel();
      if (!running.reader->is_over()) continue;
      if (running.reader->failure().empty()) {
        finish(at, json_of(running.reader->answer(), model_.tokenizer(), running.with_logprobs));
      } else {
        if (!model_.engine().healthy()) fail(ErrorKind::device, running.reader->failure());
        refuse(at, running.reader->failure());
      }
      running = {};
      --active_;
      return;
    }
  }

  void refuse(std::size_t at, const std::string& problem) {
    ++outcome_.failed;
    finish(at, {{"error", problem}, {"line", lines_[at].number}});
  }

  void finish(std::size_t at, const Json& result) {
    Json whole = Json::object();
    if (!lines_[at].id.is_null()) whole["id"] = lines_[at].id;
    whole.update(result);
    results_[at] = std::move(whole);
  }

  void write_ready() {
    while (is_wanted_ && written_ < results_.size() && results_[written_]) {
      is_wanted_ = write_(*results_[written_]);
      results_[written_++].reset();
    }
  }

  void stop() {
    outcome_.interrupted = is_wanted_;
    for (const Running& running : running_) {
      if (running.stream) running.stream->cancel();
    }
  }

  const TextModel& model_;
  std::vector<BatchLine> lines_;
  std::size_t max_running_;
  const WriteResult& write_;
  std::vector<Running> running_;
  std::vector<std::optional<Json>> results_;
  std::shared_ptr<Bell> bell_;
  ProgressBar bar_;
  std::size_t begun_ = 0, active_ = 0, written_ = 0, tokens_ = 0;
  bool is_wanted_ = true;
  BatchOutcome outcome_;
};

}  // namespace

BatchOutcome run_batch(const TextModel& model, std::vector<BatchLine> lines, int parallel,
                       const SignalWatcher& interrupt, const WriteResult& write) {
  return BatchRun(model, std::move(lines), parallel, write).run(interrupt);
}

}  // namespace inferno
