#include "server/monitoring/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace inferno::server {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// The bounds of vLLM's histograms: dashboards and recording rules depend on them.
const std::vector<double>& first_token_bounds() {
  static const std::vector<double> bounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                             0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                             20,    40,    80,   160,  640,  2560};
  return bounds;
}

const std::vector<double>& token_bounds() {
  static const std::vector<double> bounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                             0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
  return bounds;
}

const std::vector<double>& request_bounds() {
  static const std::vector<double> bounds = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                             30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
  return bounds;
}

// 1, 2, 5, 10, … beyond the longest context there is. Only those within the model's context are shown.
const std::vector<double>& length_bounds() {
  static const std::vector<double> bounds = [] {
    std::vector<double> made;
    for (double power = 1; power <= 1e7; power *= 10)
      for (const double digit : {1, 2, 5}) made.push_back(digit * power);
    return made;
  }();
  return bounds;
}

// Lock-free, because every token of every answer is observed.
class Histogram {
 public:
  explicit Histogram(const std::vector<double>& bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);
    counts_[static_cast<std::size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  std::size_t size() const { return counts_.size(); }
  double bound(std::size_t bucket) const { return bounds_[bucket]; }
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double>& bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // one per bucket, not cumulative; the last has no bound
  std::atomic<double> sum_ = 0;
};

// Counters with one label or two. Their values come from small sets, so the map stays small.
class Family {
 public:
  using Key = std::pair<std::string, std::string>;

  void add(std::string_view first, std::string_view second = {}) {
    const std::lock_guard lock(mutex_);
    ++counts_[Key(first, second)];
  }
  std::map<Key, std::uint64_t> counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::uint64_t> counts_;
};

// A label's value in the text format: a backslash before backslash, quote and newline.
std::string escaped(const std::string& value) {
  std::string held = value;
  std::string out;
  for (const char letter : utf8::take_all(held, utf8::Replacement::per_character)) {
    if (letter == '\\' || letter == '"') out += '\\';
    out += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return out;
}

// Python's client, which vLLM uses, writes 1.0 for 1; a query may name a bucket so.
std::string bound_text(double bound) {
  std::string text = fmt::format("{}", bound);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

// Writes the text, one metric after the other.
class Page {
 public:
  explicit Page(const std::string& model_name) : model_({{"model_name", model_name}}) {}

  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  void sample(std::string_view name, const Labels& labels, double value) {
    text_ += name;
    append(labels);
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
  }
  // A metric that has one value, labelled with the model.
  void counter(std::string_view name, std::string_view help, double value) {
    head(name, "counter", help);
    sample(name, model_, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    head(name, "gauge", help);
    sample(name, model_, value);
  }
  // `limit`: buckets with a larger bound are not shown; 0: all are.
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram, double limit = 0) {
    head(name, "histogram", help);
    const std::string bucket = fmt::format("{}_bucket", name);
    std::uint64_t total = 0;
    for (std::size_t at = 0; at + 1 < histogram.size(); ++at) {
      total += histogram.count(at);
      if (limit > 0 && histogram.bound(at) > limit) continue;
      sample(bucket, with("le", bound_text(histogram.bound(at))), static_cast<double>(total));
    }
    total += histogram.count(histogram.size() - 1);
    sample(bucket, with("le", "+Inf"), static_cast<double>(total));
    sample(fmt::format("{}_sum", name), model_, histogram.sum());
    sample(fmt::format("{}_count", name), model_, static_cast<double>(total));
  }

  Labels with(std::string_view label, std::string value) const {
    Labels labels = model_;
    labels.emplace_back(label, std::move(value));
    return labels;
  }
  std::string take() { return std::move(text_); }

 private:
  void append(const Labels& labels) {
    for (std::size_t at = 0; at < labels.size(); ++at) {
      const auto& [name, value] = labels[at];
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", at == 0 ? "{" : ",", name, escaped(value));
    }
    if (!labels.empty()) text_ += '}';
  }

  Labels model_;
  std::string text_;
};

// Fields that clients send although they change nothing here, sorted. Any other name is one the client
// chose, and would make as many time series as it likes.
constexpr std::array<std::string_view, 53> known_fields = {"add_generation_prompt",
                                                           "annotations",
                                                           "audio",
                                                           "background",
                                                           "best_of",
                                                           "budget_tokens",
                                                           "cache_control",
                                                           "chat_template_kwargs",
                                                           "client_metadata",
                                                           "container",
                                                           "context_management",
                                                           "continue_final_message",
                                                           "defer_loading",
                                                           "disable_parallel_tool_use",
                                                           "echo",
                                                           "encrypted_content",
                                                           "id_slot",
                                                           "include",
                                                           "include_obfuscation",
                                                           "include_reasoning",
                                                           "input_examples",
                                                           "logprobs",
                                                           "max_tool_calls",
                                                           "mcp_servers",
                                                           "metadata",
                                                           "modalities",
                                                           "n_keep",
                                                           "parallel_tool_calls",
                                                           "prediction",
                                                           "priority",
                                                           "prompt_cache_key",
                                                           "prompt_cache_retention",
                                                           "reasoning_effort",
                                                           "redacted_thinking",
                                                           "request_id",
                                                           "return_progress",
                                                           "return_token_ids",
                                                           "safety_identifier",
                                                           "samplers",
                                                           "seed",
                                                           "service_tier",
                                                           "speed",
                                                           "store",
                                                           "stream_options",
                                                           "strict",
                                                           "suffix",
                                                           "summary",
                                                           "timings_per_token",
                                                           "tools",
                                                           "truncation",
                                                           "user",
                                                           "verbosity",
                                                           "x-anthropic-billing-header"};
static_assert(std::ranges::is_sorted(known_fields));

// The name at the end of "tools[3].function.strict", if it is known.
std::string_view field_label(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
  name = name.substr(0, name.find('['));
  return std::ranges::binary_search(known_fields, name) ? name : "other";
}

// Resident memory of this process; 0 if the kernel does not tell.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  if (!(file >> size >> resident)) return 0;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double share_used(const EngineStats& engine) {
  if (engine.blocks <= 0) return 0;
  return 1.0 - static_cast<double>(engine.free_blocks) / engine.blocks;
}

}  // namespace

struct Metrics::Impl {
  Histogram first_token{first_token_bounds()}, gaps{token_bounds()}, per_token{token_bounds()};
  Histogram total{request_bounds()}, queue{request_bounds()}, prefill{request_bounds()},
      decode{request_bounds()}, inference{request_bounds()};
  Histogram prompt_length{length_bounds()}, answer_length{length_bounds()};
  std::atomic<std::uint64_t> prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  std::atomic<std::uint64_t> stopped = 0, at_limit = 0, aborted = 0, failed = 0;
  std::atomic<std::uint64_t> disconnects = 0, parse_faults = 0;
  Family requests, ignored, refused;

  void write_engine(Page& page, const MetricsState& state) const;
  void write_tokens(Page& page, const MetricsState& state) const;
  void write_times(Page& page) const;
  void write_ours(Page& page, const MetricsState& state) const;
  void write_http(Page& page) const;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::request(std::string_view route, int status) {
  impl_->requests.add(route, std::to_string(status));
}

void Metrics::first_token(double seconds) {
  impl_->first_token.observe(seconds);
  ++impl_->generated_tokens;
}

void Metrics::token_gap(double seconds) {
  impl_->gaps.observe(seconds);
  ++impl_->generated_tokens;
}

void Metrics::answer(const Answer& answer, double seconds) {
  const Finished& finished = answer.finished;
  const std::size_t tokens = answer.tokens.size();
  const bool was_cancelled = answer.finish_reason == "cancelled";
  (was_cancelled ? impl_->aborted : answer.finish_reason == "length" ? impl_->at_limit : impl_->stopped)++;
  impl_->total.observe(seconds);
  impl_->queue.observe(finished.queue_seconds);
  // A request that was cancelled in the queue computed nothing.
  if (was_cancelled && tokens == 0) return;
  // The choices of a request share its prompt.
  if (finished.choice == 0) {
    impl_->prompt_tokens += static_cast<std::uint64_t>(finished.prompt_tokens);
    impl_->cached_tokens += static_cast<std::uint64_t>(finished.cached_tokens);
  }
  impl_->prefill.observe(finished.prompt_seconds);
  impl_->decode.observe(finished.decode_seconds);
  impl_->inference.observe(finished.prompt_seconds + finished.decode_seconds);
  impl_->prompt_length.observe(finished.prompt_tokens);
  impl_->answer_length.observe(static_cast<double>(tokens));
  // The first token belongs to the prompt's time.
  if (tokens > 1) impl_->per_token.observe(finished.decode_seconds / static_cast<double>(tokens - 1));
}

void Metrics::failed_answer() {
  ++impl_->failed;
}
void Metrics::cancelled_by_disconnect() {
  ++impl_->disconnects;
}
void Metrics::parse_fault() {
  ++impl_->parse_faults;
}
void Metrics::ignored_field(std::string_view name) {
  impl_->ignored.add(field_label(name));
}
void Metrics::refused(std::string_view reason) {
  impl_->refused.add(reason);
}

void Metrics::Impl::write_engine(Page& page, const MetricsState& state) const {
  const EngineStats& engine = state.engine;
  page.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", engine.running);
  page.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", engine.waiting);
  page.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", share_used(engine));
  page.head("vllm:cache_config_info", "gauge", "Information of the KV cache: tokens of a block, and blocks.");
  Labels cache = page.with("block_size", std::to_string(engine.block_size));
  cache.emplace_back("num_gpu_blocks", std::to_string(engine.blocks));
  cache.emplace_back("cache_dtype", name_of(engine.cache_types));
  page.sample("vllm:cache_config_info", cache, 1);
  page.counter("vllm:num_preemptions_total", "Cumulative number of preemptions.",
               static_cast<double>(engine.preemptions));
}

void Metrics::Impl::write_tokens(Page& page, const MetricsState& state) const {
  const auto prompt = static_cast<double>(prompt_tokens.load());
  page.counter("vllm:prompt_tokens_total", "Number of prompt tokens, cached ones too.", prompt);
  page.counter("vllm:generation_tokens_total", "Number of generated tokens.",
               static_cast<double>(generated_tokens.load()));
  page.counter("vllm:prefix_cache_queries_total", "Prompt tokens that were looked up in the prefix cache.",
               prompt);
  page.counter("vllm:prefix_cache_hits_total", "Prompt tokens that were found in the prefix cache.",
               static_cast<double>(cached_tokens.load()));
  page.head("vllm:request_success_total", "counter", "Finished answers by reason.");
  const auto finished = [&](const char* reason, const std::atomic<std::uint64_t>& count) {
    page.sample("vllm:request_success_total", page.with("finished_reason", reason),
                static_cast<double>(count.load()));
  };
  finished("stop", stopped);
  finished("length", at_limit);
  finished("abort", aborted);
  finished("error", failed);
  page.histogram("vllm:request_prompt_tokens", "Number of prompt tokens of an answer.", prompt_length,
                 state.context);
  page.histogram("vllm:request_generation_tokens", "Number of generated tokens of an answer.", answer_length,
                 state.context);
}

void Metrics::Impl::write_times(Page& page) const {
  page.histogram("vllm:time_to_first_token_seconds", "Time from the request to its first token, in seconds.",
                 first_token);
  page.histogram("vllm:inter_token_latency_seconds", "Time between two tokens of an answer, in seconds.",
                 gaps);
  page.histogram("vllm:request_time_per_output_token_seconds",
                 "Mean time per token of an answer after the first, in seconds.", per_token);
  page.histogram("vllm:e2e_request_latency_seconds", "Time from the request to its end, in seconds.", total);
  page.histogram("vllm:request_queue_time_seconds", "Time in the queue, in seconds.", queue);
  page.histogram("vllm:request_inference_time_seconds", "Time of prefill and decode, in seconds.", inference);
  page.histogram("vllm:request_prefill_time_seconds", "Time of prefill, in seconds.", prefill);
  page.histogram("vllm:request_decode_time_seconds", "Time of decode, in seconds.", decode);
}

void Metrics::Impl::write_ours(Page& page, const MetricsState& state) const {
  page.head("inferno_build_info", "gauge", "Version of the program.");
  page.sample("inferno_build_info", page.with("version", state.version), 1);
  page.gauge("inferno_ready", "1 if the server takes requests, 0 while it loads or stops.", state.is_ready);
  page.gauge("inferno_heartbeat_age_seconds", "Time since the engine last showed that it is alive.",
             state.heartbeat_age);
  page.gauge("inferno_open_connections", "Open connections.", state.connections);
  page.gauge("inferno_kv_cache_bytes", "Size of the KV cache.",
             static_cast<double>(state.engine.cache_bytes));
  page.gauge("inferno_kv_cache_bytes_per_token", "Bytes of keys and values of one token.",
             static_cast<double>(state.engine.cache_token_bytes));
  page.counter("inferno_engine_steps_total", "Forward passes of the engine.",
               static_cast<double>(state.engine.steps));
  page.counter("inferno_mask_seconds_total", "Time spent on the masks of constrained answers, in seconds.",
               state.engine.mask_seconds);
  page.gauge("inferno_mask_max_seconds", "Longest time spent on the masks of one step, in seconds.",
             state.engine.max_mask_seconds);
  page.counter("inferno_cancelled_by_disconnect_total", "Requests cancelled because the client disconnected.",
               static_cast<double>(disconnects.load()));
  page.counter("inferno_reply_parse_faults_total",
               "Replies of the model that violated their format; their text was kept.",
               static_cast<double>(parse_faults.load()));
  page.head("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.");
  page.sample("process_resident_memory_bytes", {}, resident_bytes());
  page.head("process_start_time_seconds", "gauge",
            "Start time of the server since the Unix epoch, in seconds.");
  page.sample("process_start_time_seconds", {}, static_cast<double>(state.started));
}

void Metrics::Impl::write_http(Page& page) const {
  page.head("inferno_http_requests_total", "counter", "Requests by route and status.");
  for (const auto& [key, count] : requests.counts()) {
    Labels labels = page.with("route", key.first);
    labels.emplace_back("status", key.second);
    page.sample("inferno_http_requests_total", labels, static_cast<double>(count));
  }
  page.head("inferno_ignored_fields_total", "counter", "Request fields that had no effect, by name.");
  for (const auto& [key, count] : ignored.counts()) {
    page.sample("inferno_ignored_fields_total", page.with("field", key.first), static_cast<double>(count));
  }
  page.head("inferno_refused_requests_total", "counter", "Requests refused before they were processed.");
  for (const auto& [key, count] : refused.counts()) {
    page.sample("inferno_refused_requests_total", page.with("reason", key.first), static_cast<double>(count));
  }
}

std::string Metrics::text(const MetricsState& state) const {
  Page page(state.model_name);
  impl_->write_engine(page, state);
  impl_->write_tokens(page, state);
  impl_->write_times(page);
  impl_->write_ours(page, state);
  impl_->write_http(page);
  return page.take();
}

}  // namespace inferno::server
