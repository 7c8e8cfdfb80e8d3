#include "cli/play/tally.h"

#include <fmt/format.h>

namespace inferno::play {
namespace {

std::string rate(double tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f} tokens/s", tokens / seconds) : "- tokens/s";
}

}  // namespace

std::string answer_line(const Answer& answer) {
  const Finished& finished = answer.finished;
  const auto written = static_cast<double>(answer.tokens.size());
  std::string line = fmt::format("{} tokens, {}, first after {:.3f} s; prompt: {} tokens, {} of them cached",
                                 answer.tokens.size(), rate(written, finished.decode_seconds),
                                 answer.first_token_seconds, finished.prompt_tokens, finished.cached_tokens);
  if (answer.finish_reason == "length") line += "; ended by the limit of tokens";
  if (answer.finish_reason == "cancelled") line += "; stopped";
  return line;
}

void Tally::add(const Answer& answer) {
  ++answers;
  prompt_tokens += answer.finished.prompt_tokens;
  cached_tokens += answer.finished.cached_tokens;
  written_tokens += static_cast<long>(answer.tokens.size());
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
      rate(static_cast<double>(tally.written_tokens), tally.decode_seconds));
}

}  // namespace inferno::play
