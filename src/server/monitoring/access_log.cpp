#include "server/monitoring/access_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/utf8.h"
#include "chat/json.h"

namespace inferno::server {
namespace {

constexpr std::size_t max_word = 256;  // bytes of one value in a line of text

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
    case LogLevel::off: break;
  }
  return "off";
}

// One word of a line: values that could end the word or the line, or control a terminal, are quoted.
std::string word(const std::string& text) {
  const std::string quoted = quote(text, max_word);
  const bool is_plain = !text.empty() && quoted == '"' + text + '"' && text.find(' ') == std::string::npos;
  return is_plain ? text : quoted;
}

// ASCII only, so that no line of the log can change the direction of text or a terminal's state.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
}

double milliseconds(double seconds) {
  return static_cast<double>(static_cast<std::int64_t>(seconds * 1e6 + 0.5)) / 1e3;
}

std::string text_of(const AccessLine& line) {
  return fmt::format(
      "{} {} {} {} key={} prompt={} cached={} generated={} queue={:.1f}ms first={:.1f}ms "
      "total={:.1f}ms peer={}{}",
      line.status, word(line.method), word(line.route), word(line.id), line.key, line.prompt_tokens,
      line.cached_tokens, line.generated_tokens, line.queue_seconds * 1e3, line.first_token_seconds * 1e3,
      line.total_seconds * 1e3, word(line.peer), line.was_cancelled ? " disconnected" : "");
}

}  // namespace

bool AccessLog::is_written(LogLevel level) const {
  return options_.write && level >= options_.level && options_.level != LogLevel::off;
}

std::string AccessLog::now() const {
  const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(options_.clock());
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(second)),
                     (time - second).count());
}

void AccessLog::request(const AccessLine& line) const {
  if (!is_written(LogLevel::info)) return;
  if (options_.format == LogFormat::text) {
    options_.write(fmt::format("{} {}\n", now(), text_of(line)));
    return;
  }
  options_.write(line_of({{"time", now()},
                          {"level", "info"},
                          {"event", "request"},
                          {"id", line.id},
                          {"key", line.key},
                          {"method", line.method},
                          {"route", line.route},
                          {"status", line.status},
                          {"prompt_tokens", line.prompt_tokens},
                          {"cached_tokens", line.cached_tokens},
                          {"generated_tokens", line.generated_tokens},
                          {"queue_ms", milliseconds(line.queue_seconds)},
                          {"first_token_ms", milliseconds(line.first_token_seconds)},
                          {"total_ms", milliseconds(line.total_seconds)},
                          {"disconnected", line.was_cancelled},
                          {"peer", line.peer}}));
}

void AccessLog::message(LogLevel level, std::string_view message) const {
  if (!is_written(level)) return;
  if (options_.format == LogFormat::text) {
    // quote() also escapes newlines, which a message may have taken from a request.
    const std::string quoted = quote(message, message.size() * 4 + 2);
    options_.write(fmt::format("{} {}: {}\n", now(), name_of(level), quoted.substr(1, quoted.size() - 2)));
    return;
  }
  options_.write(line_of(
      {{"time", now()}, {"level", name_of(level)}, {"event", "message"}, {"message", std::string(message)}}));
}

}  // namespace inferno::server
