#include "cli/terminal/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/environment.h"
#include "cli/terminal/screen.h"

namespace inferno {

std::string progress_line(std::size_t done, std::size_t total, double tokens_per_second) {
  constexpr std::size_t width = 30;
  const std::size_t full = total == 0 ? width : done * width / total;
  return fmt::format("[{}{}] {}/{}, {:.0f} tokens/s", std::string(full, '#'), std::string(width - full, ' '),
                     done, total, tokens_per_second);
}

ProgressBar::ProgressBar(std::size_t total)
    : total_(total),
      is_shown_(Environment::of_process().allows_redrawing(terminal::is_terminal(STDERR_FILENO))),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

ProgressBar::~ProgressBar() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressBar::show(std::size_t done, std::size_t tokens) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_shown_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "\r{}\x1b[K", progress_line(done, total_, static_cast<double>(tokens) / seconds));
}

}  // namespace inferno
