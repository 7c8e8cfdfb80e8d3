#include "cli/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Token ids without a pattern that a router or a cache could exploit.
TokenId scattered(int position, int vocab) {
  return static_cast<TokenId>((static_cast<std::uint64_t>(position + 1) * 0x9E3779B97F4A7C15ull >> 20) %
                              static_cast<std::uint64_t>(vocab));
}

EngineOptions options_for(int streams) {
  return {.max_sequences = streams, .max_waiting = streams, .prefix_cache = false};
}

void read_to_end(TokenStream& stream) {
  while (const auto event = stream.next(std::chrono::hours(1))) {
    if (const auto* failed = std::get_if<Failed>(&*event)) fail(ErrorKind::device, failed->message);
  }
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
    cache_bytes += static_cast<double>(cache_bytes_per_token(spec, window, backend_.cache_type())) * visible;
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

double EngineMeasurer::run(int streams, int tokens) {
  std::vector<std::shared_ptr<TokenStream>> open;
  for (int i = 0; i < streams; ++i) {
    GenerationRequest request;
    request.prompt = {(i * 7919 + 1) % vocab_};
    request.max_tokens = tokens + 1;
    request.sampling = sampling_;
    open.push_back(engine_.submit(std::move(request)));
  }
  for (const auto& stream : open) stream->next(std::chrono::hours(1));  // the first token of each
  const auto start = Clock::now();
  for (const auto& stream : open) read_to_end(*stream);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Measurement EngineMeasurer::generate(int streams, int tokens, int repeat, double weight_bytes) {
  Measurement out = {
      .test = fmt::format("engine tg{}", tokens), .batch = streams, .tokens = tokens, .seconds = {}};
  out.bytes_per_step = weight_bytes;
  run(streams, 1);
  for (int i = 0; i < repeat; ++i) out.seconds.push_back(run(streams, tokens));
  return out;
}

}  // namespace inferno
