#include "cli/play/tally.h"

#include <fmt/format.h>

#include <algorithm>

namespace inferno::play {
namespace {

std::string rate(double tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? fmt::format("{:.1f} tokens/s", tokens / seconds) : "- tokens/s";
}

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

}  // namespace

std::string answer_line(const Answer& answer) {
  const Finished& finished = answer.finished;
  // The first token belongs to the prompt's time.
  const double decoded = static_cast<double>(answer.tokens.size()) - 1;
  std::string line =
      fmt::format("{} tokens, {}, first after {}; prompt: {} tokens, {} of them cached", answer.tokens.size(),
                  rate(decoded, finished.decode_seconds), duration(answer.first_token_seconds),
                  finished.prompt_tokens, finished.cached_tokens);
  if (answer.finish_reason == "length") line += "; ended by the limit of tokens";
  if (answer.finish_reason == "cancelled") line += "; stopped";
  return line;
}

void Tally::add(const Answer& answer) {
  ++answers;
  prompt_tokens += answer.finished.prompt_tokens;
  cached_tokens += answer.finished.cached_tokens;
  written_tokens += static_cast<long>(answer.tokens.size());
  decoded_tokens += std::max(static_cast<long>(answer.tokens.size()) - 1, 0L);
  prompt_seconds += answer.finished.prompt_seconds;
  decode_seconds += answer.finished.decode_seconds;
}

std::string session_lines(const Tally& tally) {
  const long read = tally.prompt_tokens - tally.cached_tokens;
  return fmt::format(
      "answers   {}\n"
      "prompts   {} tokens: {} cached, {} read at {}\n"
      "written   {} tokens at {}\n",
      tally.answers, tally.prompt_tokens, tally.cached_tokens, read,
      rate(static_cast<double>(read), tally.prompt_seconds), tally.written_tokens,
      rate(static_cast<double>(tally.decoded_tokens), tally.decode_seconds));
}

}  // namespace inferno::play
