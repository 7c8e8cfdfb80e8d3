// One line per request, as text or JSON. Never the text of a prompt or an answer, and nothing a client sent
// without escaping. Lines are handed to a function; the command decides where they go.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace inferno::server {

enum class LogFormat { text, json };
enum class LogLevel { debug, info, warning, error, off };

struct LogOptions {
  LogFormat format = LogFormat::text;
  LogLevel level = LogLevel::info;
  std::function<void(std::string_view line)> write;  // thread-safe; each line ends with '\n'
  std::function<std::chrono::system_clock::time_point()> clock = std::chrono::system_clock::now;
};

struct AccessLine {
  std::string id, method, route, peer;
  int key = 0;     // number of the API key; 0 without keys
  int status = 0;  // 0: no response was sent
  int prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_seconds = 0, first_token_seconds = 0, total_seconds = 0;
  bool was_cancelled = false;  // the client disconnected
};

// Thread-safe, if `write` is. Nothing is written if `write` is empty.
class AccessLog {
 public:
  explicit AccessLog(LogOptions options) : options_(std::move(options)) {}
  void request(const AccessLine& line) const;                    // level info
  void message(LogLevel level, std::string_view message) const;  // of the server itself

 private:
  bool is_written(LogLevel level) const;
  std::string now() const;

  LogOptions options_;
};

}  // namespace inferno::server
