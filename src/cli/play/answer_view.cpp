#include "cli/play/answer_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sizes.h"
#include "base/utf8.h"

namespace inferno::play {
namespace {

constexpr const char* dim = "\x1b[2m";
constexpr const char* plain = "\x1b[0m";

std::string rate(double tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? fmt::format("{:.1f} tokens/s", tokens / seconds) : "- tokens/s";
}

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

}  // namespace

AnswerView::AnswerView(ViewOptions options)
    : options_(options),
      markdown_(options.has_colour ? terminal::terminal_theme : terminal::no_theme, options.columns),
      reasoning_(options.is_rendered ? options.columns : 0) {}

void AnswerView::resize(int columns) {
  if (!options_.is_rendered) return;
  markdown_.resize(columns);
  reasoning_.resize(columns);
}

std::string AnswerView::show(const ReplyPart& part) {
  if (const auto* delta = std::get_if<ContentDelta>(&part)) return content(delta->text);
  if (const auto* delta = std::get_if<ReasoningDelta>(&part)) return reasoning(delta->text);
  if (const auto* delta = std::get_if<ToolCallDelta>(&part)) return call(*delta);
  return {};  // warnings are shown below the answer
}

std::string AnswerView::finish() {
  std::string out = end_reasoning() + markdown_.finish();
  if (!is_at_line_start_) out += '\n';
  is_at_line_start_ = true;
  is_calling_ = false;
  return out;
}

std::string AnswerView::content(const std::string& text) {
  if (text.empty()) return {};
  std::string out = end_reasoning();
  const std::string shown = safe(text);
  out += options_.is_rendered ? markdown_.push(shown) : shown;
  is_at_line_start_ = shown.ends_with('\n');
  is_calling_ = false;
  return out;
}

std::string AnswerView::reasoning(const std::string& text) {
  if (!options_.shows_reasoning || text.empty()) return {};
  std::string out;
  if (!is_reasoning_) {
    is_reasoning_ = true;
    out += markdown_.finish() + new_line();
    if (options_.has_colour) out += dim;
  }
  const std::string shown = safe(text);
  is_at_line_start_ = shown.ends_with('\n');
  reasoning_.push(shown);
  return out + reasoning_.take();
}

std::string AnswerView::call(const ToolCallDelta& delta) {
  std::string out = end_reasoning();
  if (!is_calling_ || !delta.name.empty()) {
    out += markdown_.finish() + new_line() + fmt::format("[calls {}] ", safe(delta.name));
    is_calling_ = true;
  }
  is_at_line_start_ = false;
  return out + safe(delta.arguments);
}

std::string AnswerView::end_reasoning() {
  if (!is_reasoning_) return {};
  is_reasoning_ = false;
  std::string out = reasoning_.finish() + (options_.has_colour ? plain : "");
  return out + new_line() + "\n";
}

std::string AnswerView::new_line() {
  if (is_at_line_start_) return {};
  is_at_line_start_ = true;
  return "\n";
}

std::string AnswerView::safe(const std::string& text) const {
  return options_.is_terminal ? printable(text) : text;
}

std::string ContextUse::text() const {
  return fmt::format("{} of {}", grouped(tokens), grouped(limit));
}

std::string answer_line(const Answer& answer, const ContextUse& context) {
  const Finished& finished = answer.finished;
  // Prefill produces the first token.
  const double decoded = static_cast<double>(answer.tokens.size()) - 1;
  std::string line = fmt::format(
      "{}, {}, first token after {}; prompt: {}, {} cached", counted(answer.tokens.size(), "token"),
      rate(decoded, finished.decode_seconds), duration(answer.first_token_seconds),
      counted(static_cast<std::uint64_t>(finished.prompt_tokens), "token"), finished.cached_tokens);
  line += fmt::format("; context: {}", context.text());
  if (answer.finish_reason == "length")
    line += context.tokens >= context.limit ? "; stopped: context full" : "; stopped: token limit";
  if (answer.finish_reason == "cancelled") line += "; stopped";
  return line;
}

void SessionStats::add(const Answer& answer) {
  ++answers;
  prompt_tokens += answer.finished.prompt_tokens;
  cached_tokens += answer.finished.cached_tokens;
  generated_tokens += static_cast<long>(answer.tokens.size());
  decoded_tokens += std::max(static_cast<long>(answer.tokens.size()) - 1, 0L);
  prompt_seconds += answer.finished.prompt_seconds;
  decode_seconds += answer.finished.decode_seconds;
}

std::string session_lines(const SessionStats& stats) {
  const long prefilled = stats.prompt_tokens - stats.cached_tokens;
  return fmt::format(
      "answers   {}\n"
      "prompts   {}: {} cached, {} prefilled at {}\n"
      "generated {} at {}\n",
      stats.answers, counted(static_cast<std::uint64_t>(stats.prompt_tokens), "token"), stats.cached_tokens,
      prefilled, rate(static_cast<double>(prefilled), stats.prompt_seconds),
      counted(static_cast<std::uint64_t>(stats.generated_tokens), "token"),
      rate(static_cast<double>(stats.decoded_tokens), stats.decode_seconds));
}

}  // namespace inferno::play
