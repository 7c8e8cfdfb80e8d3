#include "cli/bench/measure_engine.h"

#include <fmt/format.h>

#include <chrono>

#include "base/error.h"

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;

EngineOptions options_for(int streams) {
  return {.max_sequences = streams, .max_waiting = streams, .prefix_cache = false};
}

void read_to_end(TokenStream& stream) {
  while (const auto event = stream.next(std::chrono::hours(1))) {
    if (const auto* failed = std::get_if<Failed>(&*event)) fail(ErrorKind::device, failed->message);
  }
}

}  // namespace

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
