#include "cli/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>

#include "base/error.h"
#include "base/seconds.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;

// Token ids without a pattern that a router or a cache could exploit.
TokenId scattered(int position, int vocab) {
  return static_cast<TokenId>((static_cast<std::uint64_t>(position + 1) * 0x9E3779B97F4A7C15ull >> 20) %
                              static_cast<std::uint64_t>(vocab));
}

EngineOptions options_for(int streams) {
  return {.max_sequences = streams, .max_waiting = streams, .prefix_cache = false};
}

// Reads at most `max` tokens, or to the end of the answer. Returns their number.
int read(TokenStream& stream, int max) {
  int tokens = 0;
  while (tokens < max) {
    const auto event = stream.next(std::chrono::hours(1));
    if (!event) break;
    if (const auto* failed = std::get_if<Failed>(&*event)) fail(ErrorKind::device, failed->message);
    if (std::holds_alternative<Sampled>(*event)) ++tokens;
  }
  return tokens;
}

}  // namespace

double Measurement::tokens_per_second() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return tokens * batch / sorted[sorted.size() / 2];
}

double Measurement::deviation() const {
  if (seconds.size() < 2) return 0.0;
  double sum = 0.0, squares = 0.0;
  for (const double s : seconds) {
    const double rate = tokens * batch / s;
    sum += rate;
    squares += rate * rate;
  }
  const auto n = static_cast<double>(seconds.size());
  return std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
}

Measurer::Measurer(Decoder& decoder, Backend& backend, int batch, int context, const Sampling& sampling)
    : decoder_(decoder),
      backend_(backend),
      batch_(batch),
      runner_(decoder, backend, {.sequences = batch, .context = context}),
      next_(static_cast<std::size_t>(batch)) {
  allocate_sampling(sampling);
}

void Measurer::allocate_sampling(const Sampling& sampling) {
  const auto integers = [&](int rows, int cols, auto allocate) {
    Matrix m = {nullptr, DType::i32, rows, cols};
    m.data = memory_.emplace_back((backend_.*allocate)(m.bytes(), "sampling")).data();
    return m;
  };
  const std::vector<SamplingRow> settings(static_cast<std::size_t>(batch_),
                                          SamplingState(sampling, 0, {}).row());
  sampling_ = {.rows = integers(batch_, sizeof(SamplingRow) / 4, &Backend::allocate),
               .lists = integers(1, 2, &Backend::allocate),
               .tokens = runner_.drawn_tokens(batch_)};
  for (Matrix& drawn : drawn_) drawn = integers(batch_, sample_columns(0), &Backend::allocate_for_host);
  backend_.upload(sampling_.rows, std::as_bytes(std::span(settings)));
}

void Measurer::queue_step(std::span<const std::vector<TokenId>> inputs, int start, StepTokens from,
                          bool wants_logits) {
  std::vector<BatchRunner::Input> rows;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    rows.push_back({.sequence = static_cast<int>(i),
                    .tokens = inputs[i],
                    .start = start,
                    .logits = wants_logits ? 1 : 0});
  }
  const Matrix result = runner_.step(rows, from);
  if (!wants_logits) return;
  const Matrix drawn = drawn_[turn_++ % std::size(drawn_)];
  backend_.sample(drawn, result, sampling_);
  unread_.push_back({.results = drawn, .mark = backend_.mark()});
}

// Reads the tokens of all queued steps but the latest `left`.
void Measurer::read_tokens(std::size_t left) {
  for (; unread_.size() > left; unread_.pop_front()) {
    backend_.wait_for(unread_.front().mark);
    const auto* heads = reinterpret_cast<const SampleHead*>(unread_.front().results.data);
    for (std::size_t i = 0; i < next_.size(); ++i) {
      expects(heads[i].outcome == SampleOutcome::token, "random weights give finite logits");
      next_[i] = heads[i].token;
    }
  }
}

void Measurer::prefill(int tokens) {
  const int max_tokens = std::max(1, decoder_.limits().max_tokens / batch_);
  for (int done = 0; done < tokens;) {
    const int count = std::min(max_tokens, tokens - done);
    std::vector<std::vector<TokenId>> inputs(static_cast<std::size_t>(batch_));
    for (int sequence = 0; sequence < batch_; ++sequence) {
      for (int i = 0; i < count; ++i) {
        const int position = done + i + sequence * tokens;
        inputs[static_cast<std::size_t>(sequence)].push_back(scattered(position, decoder_.spec().vocab));
      }
    }
    queue_step(inputs, done, StepTokens::given, done + count == tokens);
    done += count;
  }
  read_tokens(0);
}

void Measurer::decode(int tokens, int start) {
  const bool ahead = backend_.queues();
  std::vector<std::vector<TokenId>> inputs(static_cast<std::size_t>(batch_));
  for (int i = 0; i < tokens; ++i) {
    for (std::size_t sequence = 0; sequence < inputs.size(); ++sequence) inputs[sequence] = {next_[sequence]};
    queue_step(inputs, start + i, ahead && i > 0 ? StepTokens::drawn : StepTokens::given, true);
    read_tokens(ahead ? 1 : 0);
  }
  read_tokens(0);
}

Measurement Measurer::prompt(int tokens, int repeat) {
  Measurement out = {.test = fmt::format("pp{}", tokens), .batch = batch_, .tokens = tokens, .seconds = {}};
  prefill(tokens);
  for (int i = 0; i < repeat; ++i) {
    const auto start = Clock::now();
    prefill(tokens);
    out.seconds.push_back(seconds_since(start));
  }
  return out;
}

void Measurer::profile(int tokens, int depth) {
  backend_.show_profiler([&] { decode(1, depth + tokens - 1); });
}

Measurement Measurer::generate(int tokens, int depth, int repeat, double weight_bytes) {
  Measurement out = {
      .test = depth == 0 ? fmt::format("tg{}", tokens) : fmt::format("tg{} @ d{}", tokens, depth),
      .batch = batch_,
      .tokens = tokens,
      .depth = depth,
      .seconds = {}};
  const ModelSpec& spec = decoder_.spec();
  double cache_bytes = 0.0;
  for (const int window : window_groups(spec)) {
    const int seen = depth + tokens / 2;
    const int visible = window == 0 ? seen : std::min(window, seen);
    cache_bytes += static_cast<double>(cache_bytes_per_token(spec, window, decoder_.cache_types())) * visible;
  }
  out.bytes_per_step = weight_bytes + cache_bytes * batch_;
  if (depth > 0) prefill(depth);
  decode(1, depth);  // warm up
  for (int i = 0; i < repeat; ++i) {
    const auto start = Clock::now();
    decode(tokens, depth);
    out.seconds.push_back(seconds_since(start));
  }
  return out;
}

EngineMeasurer::EngineMeasurer(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder,
                               int max_streams, Sampling sampling)
    : vocab_(decoder->spec().vocab),
      sampling_(std::move(sampling)),
      engine_(std::move(backend), std::move(decoder), options_for(max_streams)) {}

std::shared_ptr<TokenStream> EngineMeasurer::submit(int stream, int tokens,
                                                    const std::shared_ptr<PendingConstraint>& constraint) {
  GenerationRequest request;
  request.prompt = {(stream * 7919 + 1) % vocab_};
  request.max_tokens = tokens;
  request.sampling = sampling_;
  request.constraint = constraint;
  return engine_.submit(std::move(request));
}

// Until all streams have had their tokens; only free ones are waited for if there are some and the rest is
// constrained.
double EngineMeasurer::run(int tokens, const Constraints& constraints) {
  struct Open {
    int number = 0;
    std::shared_ptr<TokenStream> stream;
    int left = 0;  // tokens
  };
  std::vector<Open> open;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const int number = static_cast<int>(i);
    open.push_back({number, submit(number, tokens + 1, constraints[i]), tokens});
  }
  for (Open& one : open) read(*one.stream, 1);  // the first token of each
  const auto start = Clock::now();
  const bool has_free = std::ranges::find(constraints, nullptr) != constraints.end();
  std::atomic<double> counted = 0.0;
  std::vector<std::future<void>> readers;
  for (Open& one : open) {
    readers.push_back(std::async(std::launch::async, [&, this] {
      const auto& constraint = constraints[static_cast<std::size_t>(one.number)];
      while ((one.left -= read(*one.stream, one.left)) > 0)
        one.stream = submit(one.number, one.left, constraint);
      if (has_free && constraint) return;
      const double seconds = seconds_since(start);
      for (double last = counted; last < seconds && !counted.compare_exchange_weak(last, seconds);) continue;
    }));
  }
  for (std::future<void>& reader : readers) reader.get();
  return counted;
}

Measurement EngineMeasurer::measure(Measurement out, int repeat, const Constraints& constraints) {
  run(1, constraints);
  const double before = engine_.stats().mask_seconds;
  for (int i = 0; i < repeat; ++i) out.seconds.push_back(run(out.tokens, constraints));
  const EngineStats stats = engine_.stats();
  out.mask_seconds = stats.mask_seconds - before;
  // Of the engine's whole life; a row without constraints has none of it.
  if (out.mask_seconds > 0.0) out.max_mask_seconds = stats.max_mask_seconds;
  return out;
}

Measurement EngineMeasurer::generate(int streams, int tokens, int repeat, double weight_bytes,
                                     const MeasuredConstraint& constraint) {
  const std::string_view space = constraint.name.empty() ? "" : " ";
  Measurement out = {.test = fmt::format("engine tg{}{}{}", tokens, space, constraint.name),
                     .batch = streams,
                     .tokens = tokens,
                     .seconds = {},
                     .bytes_per_step = weight_bytes};
  return measure(std::move(out), repeat,
                 Constraints(static_cast<std::size_t>(streams), constraint.constraint));
}

Measurement EngineMeasurer::generate_half(int streams, int tokens, int repeat, double weight_bytes,
                                          const std::shared_ptr<PendingConstraint>& constraint) {
  Constraints constraints(static_cast<std::size_t>(streams));
  for (std::size_t i = 1; i < constraints.size(); i += 2) constraints[i] = constraint;
  Measurement out = {.test = fmt::format("engine tg{} half", tokens),
                     .batch = streams,
                     .tokens = tokens,
                     .seconds = {},
                     .bytes_per_step = weight_bytes};
  return measure(std::move(out), repeat, constraints);
}

}  // namespace inferno
