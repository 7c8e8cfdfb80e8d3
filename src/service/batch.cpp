#include "service/batch.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

[[noreturn]] void refuse(const std::string& key, std::string_view expected, const Json& value) {
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected {}, found {}", key, expected,
                   value.is_string() ? quote(value.get<std::string>()) : value.type_name()));
}

// A line of OpenAI's batch files: {"custom_id", "method", "url", "body"}. Its body is a request as in the
// API.
Json unwrapped(const Json& line) {
  if (!line.contains("body")) {
    if (line.contains("method") || line.contains("url"))
      fail(ErrorKind::invalid_request, "body: missing beside \"method\" and \"url\"");
    return line;
  }
  const Json& body = line.at("body");
  if (!body.is_object()) refuse("body", "an object", body);
  for (const auto& [key, value] : line.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (key == "method" && text != "POST") refuse(key, "\"POST\"", value);
    if (key == "url" && text != "/v1/chat/completions" && text != "/v1/completions")
      refuse(key, "\"/v1/chat/completions\" or \"/v1/completions\"", value);
    if (key != "method" && key != "url" && key != "body" && key != "custom_id" && key != "id")
      fail(ErrorKind::invalid_request, fmt::format("\"{}\" is not a key of a batch line with a body", key));
  }
  Json request = body;
  // Whom the request is for and how it is transported changes no answer.
  for (const char* key : {"model", "stream", "stream_options", "user", "metadata", "store", "service_tier"})
    request.erase(key);
  return request;
}

std::string with_line(const std::string& problem, int number) {
  return problem.starts_with("line ") ? problem : fmt::format("line {}: {}", number, problem);
}

void parse_line(BatchLine& line, std::string_view text, const RequestDefaults& defaults) {
  try {
    Json object = parse_json(text, fmt::format("line {}", line.number), LargeIntegers::round);
    if (!object.is_object()) fail(ErrorKind::invalid_request, "expected a JSON object");
    for (const char* key : {"id", "custom_id"}) {
      if (object.contains(key)) line.id = object.at(key);
      object.erase(key);
    }
    line.request = read_request(unwrapped(object), defaults);
  } catch (const Error& error) {
    line.error = with_line(error.what(), line.number);
  }
}

// Requests with new events: the engine's thread rings, the thread that writes results waits.
class Bell {
 public:
  void ring(std::size_t request) {
    {
      const std::lock_guard lock(mutex_);
      ringing_.push_back(request);
    }
    rung_.notify_one();
  }

  std::optional<std::size_t> wait(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!rung_.wait_for(lock, timeout, [&] { return !ringing_.empty(); })) return std::nullopt;
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
  BatchRun(const TextModel& model, std::vector<BatchLine> lines, int parallel,
           const BatchCallbacks& callbacks)
      : model_(model),
        lines_(std::move(lines)),
        max_running_(static_cast<std::size_t>(parallel) * 2),
        callbacks_(callbacks),
        running_(lines_.size()),
        results_(lines_.size()),
        bell_(std::make_shared<Bell>()) {}

  BatchOutcome run() {
    while (is_read_ && written_ < lines_.size()) {
      if (!outcome_.cancelled && callbacks_.is_cancelled()) cancel();
      while (!outcome_.cancelled && begun_ < lines_.size() && active_ < max_running_) begin(begun_++);
      write_ready();
      if (active_ == 0 && outcome_.cancelled) break;
      if (active_ == 0) continue;
      if (const auto request = bell_->wait(std::chrono::milliseconds(50))) listen(*request);
      if (callbacks_.progress) callbacks_.progress(written_, tokens_);
    }
    if (!is_read_) cancel();
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
      // Captures the bell, not this object: the engine may ring once more during teardown.
      running.stream =
          model_.engine().submit(std::move(request.generation), [bell = bell_, at] { bell->ring(at); });
      ++active_;
    } catch (const Error& error) {
      // A line that cannot be answered gets an error as its result; a broken device ends the batch.
      if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::internal) throw;
      refuse(at, error.what());
    }
  }

  void listen(std::size_t at) {
    Running& running = running_[at];
    if (!running.stream) return;  // already finished by an earlier ring
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
    finish(at, {{"error", with_line(problem, lines_[at].number)}, {"line", lines_[at].number}});
  }

  void finish(std::size_t at, const Json& result) {
    Json whole = Json::object();
    if (!lines_[at].id.is_null()) whole["id"] = lines_[at].id;
    whole.update(result);
    results_[at] = std::move(whole);
  }

  void write_ready() {
    while (is_read_ && written_ < results_.size() && results_[written_]) {
      is_read_ = callbacks_.write(*results_[written_]);
      results_[written_++].reset();
    }
  }

  void cancel() {
    outcome_.cancelled = is_read_;
    for (const Running& running : running_) {
      if (running.stream) running.stream->cancel();
    }
  }

  const TextModel& model_;
  std::vector<BatchLine> lines_;
  std::size_t max_running_;
  const BatchCallbacks& callbacks_;
  std::vector<Running> running_;
  std::vector<std::optional<Json>> results_;
  std::shared_ptr<Bell> bell_;
  std::size_t begun_ = 0, active_ = 0, written_ = 0, tokens_ = 0;
  bool is_read_ = true;
  BatchOutcome outcome_;
};

}  // namespace

std::vector<BatchLine> parse_batch(std::string_view text, const RequestDefaults& defaults) {
  std::vector<BatchLine> lines;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    BatchLine& added = lines.emplace_back();
    added.number = number;
    parse_line(added, line, defaults);
  }
  return lines;
}

BatchOutcome run_batch(const TextModel& model, std::vector<BatchLine> lines, int parallel,
                       const BatchCallbacks& callbacks) {
  return BatchRun(model, std::move(lines), parallel, callbacks).run();
}

}  // namespace inferno
