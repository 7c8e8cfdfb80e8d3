#include "cli/download/display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/terminal/screen.h"

namespace inferno {
namespace {

constexpr std::chrono::seconds rate_window{5};
constexpr int bar_cells = 20;
constexpr int max_name = 44;

std::string bar(std::uint64_t have, std::uint64_t size) {
  const int full = size == 0
                       ? bar_cells
                       : static_cast<int>(static_cast<double>(have) / static_cast<double>(size) * bar_cells);
  std::string text;
  for (int cell = 0; cell < bar_cells; ++cell) text += cell < full ? "█" : "░";
  return text;
}

int percent(std::uint64_t have, std::uint64_t size) {
  if (size == 0) return 100;
  return static_cast<int>(static_cast<double>(have) / static_cast<double>(size) * 100);
}

std::string time_left(std::uint64_t missing, double rate) {
  if (rate < 1) return "";
  return short_duration(static_cast<double>(missing) / rate);
}

// Keeps the end of a long path, which says more than its start. Counts bytes, which is enough here.
std::string shortened(const std::string& path) {
  const std::string text = printable(path);
  if (text.size() <= max_name) return text;
  std::size_t begin = text.size() - max_name + 3;
  while (begin < text.size() && utf8::is_continuation(text[begin])) ++begin;
  return "..." + text.substr(begin);
}

std::string_view note_of(hub::FileState state) {
  switch (state) {
    case hub::FileState::elsewhere: return "another process is downloading it";
    case hub::FileState::verifying: return "verified, writing";
    case hub::FileState::waiting:
    case hub::FileState::fetching:
    case hub::FileState::finished: return "";
  }
  return "";
}

// Cuts a line before `columns` characters: a line that wraps could not be redrawn.
std::string cut(const std::string& line, int columns) {
  int count = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (utf8::is_continuation(line[at])) continue;
    if (++count >= columns) return line.substr(0, at);
  }
  return line;
}

}  // namespace

void say(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

void Rate::add(Time now, std::uint64_t total) {
  samples_.push_back({now, total});
  while (samples_.size() > 2 && now - samples_.front().time > rate_window) samples_.pop_front();
}

double Rate::per_second() const {
  if (samples_.size() < 2 || samples_.back().total < samples_.front().total) return 0;
  const double seconds = std::chrono::duration<double>(samples_.back().time - samples_.front().time).count();
  return seconds <= 0 ? 0 : static_cast<double>(samples_.back().total - samples_.front().total) / seconds;
}

std::string short_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(seconds + 0.5, 0.0, 3.6e6));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string total_line(const hub::DownloadProgress& progress, double rate) {
  std::string line = fmt::format("{:>3} %  {} of {}", percent(progress.have, progress.size),
                                 human_size(progress.have), human_size(progress.size));
  if (rate >= 1) line += fmt::format("  {}/s", human_size(static_cast<std::uint64_t>(rate)));
  const std::string left = time_left(progress.size - std::min(progress.have, progress.size), rate);
  if (!left.empty() && progress.have < progress.size) line += fmt::format("  {} left", left);
  return line;
}

std::vector<std::string> download_lines(const hub::DownloadProgress& progress,
                                        const std::vector<double>& file_rates, double rate, int columns,
                                        int rows) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < progress.files.size() && static_cast<int>(lines.size()) < rows; ++at) {
    const hub::FileProgress& file = progress.files[at];
    const bool is_in_progress = file.state == hub::FileState::fetching ||
                                file.state == hub::FileState::verifying ||
                                file.state == hub::FileState::elsewhere;
    if (!is_in_progress) continue;
    std::string line =
        fmt::format(" {:<{}} {} {:>3} %  {:>9}", shortened(file.path), max_name, bar(file.have, file.size),
                    percent(file.have, file.size), human_size(file.size));
    const double speed = at < file_rates.size() ? file_rates[at] : 0;
    if (const std::string_view note = note_of(file.state); !note.empty()) {
      line += fmt::format("  {}", note);
    } else if (speed >= 1) {
      line += fmt::format("  {}/s  {}", human_size(static_cast<std::uint64_t>(speed)),
                          time_left(file.size - std::min(file.have, file.size), speed));
    }
    lines.push_back(cut(line, columns));
  }
  lines.push_back(cut(fmt::format(" {}/{} files  {}  {}", progress.finished, progress.files.size(),
                                  bar(progress.have, progress.size), total_line(progress, rate)),
                      columns));
  return lines;
}

DownloadDisplay::Kind DownloadDisplay::kind_for_stderr(bool is_wanted) {
  if (!is_wanted) return Kind::silent;
  return terminal::is_terminal(STDERR_FILENO) ? Kind::screen : Kind::lines;
}

void DownloadDisplay::show(const hub::DownloadProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  rate_.add(now, progress.fetched);
  file_rates_.resize(progress.files.size());
  std::vector<double> rates;
  for (std::size_t at = 0; at < progress.files.size(); ++at) {
    file_rates_[at].add(now, progress.files[at].fetched);
    rates.push_back(file_rates_[at].per_second());
  }
  if (kind_ == Kind::lines) {
    const int tenths = percent(progress.have, progress.size) / 10;
    if (tenths > printed_tenths_) say(total_line(progress, rate_.per_second()) + "\n");
    printed_tenths_ = std::max(printed_tenths_, tenths);
  }
  if (kind_ != Kind::screen) return;
  const terminal::ScreenSize screen = terminal::screen_size(STDERR_FILENO);
  std::string text = drawn_lines_ > 0 ? fmt::format("\r\x1b[{}A", drawn_lines_) : "";
  const auto lines =
      download_lines(progress, rates, rate_.per_second(), screen.columns, std::clamp(screen.rows - 3, 1, 8));
  for (const std::string& line : lines) text += line + "\x1b[K\n";
  text += "\x1b[J";
  drawn_lines_ = static_cast<int>(lines.size());
  say(text);
}

void DownloadDisplay::clear() {
  if (kind_ != Kind::screen || drawn_lines_ == 0) return;
  say(fmt::format("\r\x1b[{}A\x1b[J", drawn_lines_));
  drawn_lines_ = 0;
}

}  // namespace inferno
