#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/terminal/streams.h"

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

void erase_line() {
  say("\r\x1b[K");
}

}  // namespace

std::string progress_line(std::size_t done, std::size_t total, double tokens_per_second) {
  constexpr std::size_t width = 30;
  const std::size_t full = total == 0 ? width : done * width / total;
  return fmt::format("[{}{}] {}/{}, {:.0f} tokens/s", std::string(full, '#'), std::string(width - full, ' '),
                     done, total, tokens_per_second);
}

std::string load_line(std::uint64_t done, std::uint64_t total, double seconds) {
  std::string line = fmt::format(
      "{:.0f} % of {}", 100.0 * static_cast<double>(done) / static_cast<double>(total), human_size(total));
  if (seconds > 0.0) line += fmt::format(", {:.2f} GB/s", static_cast<double>(done) / 1e9 / seconds);
  return line;
}

ProgressBar::ProgressBar(std::size_t total) : total_(total), start_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  erase_line();
}

void ProgressBar::show(std::size_t done, std::size_t tokens) {
  const auto now = Clock::now();
  if (drawn_ && now - *drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  const double rate = static_cast<double>(tokens) / seconds_between(start_, now);
  say(fmt::format("\r{}\x1b[K", progress_line(done, total_, rate)));
}

LoadMeter::LoadMeter(const std::string& name) : name_(printable(name)), start_(Clock::now()) {
  say(fmt::format("\rloading {} …", name_));
}

LoadMeter::~LoadMeter() {
  erase_line();
}

void LoadMeter::show(std::uint64_t done, std::uint64_t total) const {
  if (total == 0) return;
  const double seconds = seconds_between(start_, Clock::now());
  say(fmt::format("\rloading {} … {}\x1b[K", name_, load_line(done, total, seconds)));
}

}  // namespace inferno
