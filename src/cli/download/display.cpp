#include "cli/download/display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "cli/terminal/text_table.h"
#include "text/characters.h"

namespace inferno {
namespace {

constexpr std::chrono::seconds rate_window{5};
constexpr int max_bar = 20, min_bar = 8;
constexpr int max_name = 44, min_name = 12;
constexpr std::chrono::milliseconds shortest_notice{500};

std::string bar(std::uint64_t have, std::uint64_t size, int cells, bool unicode) {
  const int full =
      size == 0 ? cells : static_cast<int>(static_cast<double>(have) / static_cast<double>(size) * cells);
  std::string text;
  for (int cell = 0; cell < cells; ++cell)
    text += cell < full ? (unicode ? "█" : "#") : (unicode ? "░" : "-");
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

std::string padded(std::string text, int width) {
  const int missing = width - columns(text);
  if (missing > 0) text.append(static_cast<std::size_t>(missing), ' ');
  return text;
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

// The figures of a file, from all of them to the percentage alone.
std::vector<std::string> figures_of(const hub::FileProgress& file, double rate) {
  const std::string share = fmt::format("{:>3} %", percent(file.have, file.size));
  const std::string sized = fmt::format("{}  {:>8}", share, human_size(file.size));
  if (const std::string_view note = note_of(file.state); !note.empty())
    return {fmt::format("{}  {}", sized, note), sized, share};
  if (rate < 1) return {sized, share};
  const std::string left = time_left(file.size - std::min(file.have, file.size), rate);
  const std::string speed = fmt::format("{}/s", human_size(static_cast<std::uint64_t>(rate)));
  return {fmt::format("{}  {:>10}  {}", sized, speed, left), fmt::format("{}  {}", sized, left), sized,
          share};
}

std::string file_line(const hub::FileProgress& file, double rate, const DisplayShape& shape) {
  const int width = shape.columns - 1;  // a line that fills the screen wraps on some terminals
  const std::vector<std::string> all = figures_of(file, rate);
  const int name_width = std::min(max_name, std::max(columns(printable(file.path)), min_name));
  const int room = width - columns(all.front()) - name_width - 4;
  if (room >= min_bar) {
    const int longest = std::min(max_name, width - columns(all.front()) - 4 - std::min(room, max_bar));
    return fmt::format(" {} {}  {}", padded(shortened(file.path, longest), longest),
                       bar(file.have, file.size, std::min(room, max_bar), shape.unicode), all.front());
  }
  for (const std::string& figures : all) {
    const int left = width - columns(figures) - 3;
    if (left >= std::min(min_name, name_width) || &figures == &all.back())
      return fmt::format(" {}  {}", padded(shortened(file.path, left), left), figures);
  }
  return "";
}

std::vector<std::string> total_lines(const hub::DownloadProgress& progress, double rate,
                                     const DisplayShape& shape) {
  const int width = shape.columns - 1;
  const std::string files = fmt::format(" {}/{} files  ", progress.finished, progress.files.size());
  const std::string total = total_line(progress, rate);
  const int room = width - columns(files) - columns(total) - 2;
  if (room >= min_bar)
    return {files + bar(progress.have, progress.size, std::min(room, max_bar), shape.unicode) + "  " + total};
  if (room >= -2) return {files + total};
  if (columns(total) + 1 <= width) return {" " + total};
  // The share and the bytes, then the rate and the time.
  const std::size_t cut = total.find("  ", total.find(" of "));
  if (cut == std::string::npos) return {" " + total};
  return {" " + total.substr(0, cut), "    " + total.substr(cut)};
}

}  // namespace

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

std::string pause_text(const hub::Pause& pause) {
  const double seconds = static_cast<double>(pause.left.count()) / 1e3;
  return fmt::format("waiting {}, try {} of {}: {}", short_duration(std::max(seconds, 1.0)), pause.next_try,
                     pause.tries, printable(pause.reason));
}

std::vector<std::string> download_lines(const hub::DownloadProgress& progress,
                                        const std::vector<double>& file_rates, double rate,
                                        const DisplayShape& shape, const std::optional<hub::Pause>& pause) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < progress.files.size() && static_cast<int>(lines.size()) < shape.files; ++at) {
    const hub::FileProgress& file = progress.files[at];
    const bool is_in_progress = file.state == hub::FileState::fetching ||
                                file.state == hub::FileState::verifying ||
                                file.state == hub::FileState::elsewhere;
    if (is_in_progress) lines.push_back(file_line(file, at < file_rates.size() ? file_rates[at] : 0, shape));
  }
  for (std::string& line : total_lines(progress, rate, shape)) lines.push_back(std::move(line));
  if (pause && pause->left >= shortest_notice) {
    // The figures come first: the last words of a long reason may be left out.
    std::string text = " " + pause_text(*pause);
    while (columns(text) >= shape.columns) {
      const std::size_t space = text.rfind(' ');
      text.resize(space > 0 ? space : previous_character(text, text.size()));
    }
    lines.push_back(std::move(text));
  }
  return lines;
}

std::string to_first_line(const std::vector<std::string>& lines, int screen_columns) {
  std::size_t rows = 0;
  for (const std::string& line : lines) rows += terminal::reflowed_rows(line, screen_columns);
  return rows > 0 ? fmt::format("\r\x1b[{}A", rows) : "";
}

void WaitNotice::show(const std::optional<hub::Pause>& pause) {
  if (!pause || pause->left < shortest_notice) return;
  const std::string which = fmt::format("{} {}", pause->reason, pause->next_try);
  if (which == said_) return;
  said_ = which;
  say(pause_text(*pause) + "\n");
}

DownloadDisplay::DownloadDisplay(const Environment& environment, bool is_wanted)
    : kind_(!is_wanted                                                           ? Kind::silent
            : environment.allows_redrawing(terminal::is_terminal(STDERR_FILENO)) ? Kind::screen
                                                                                 : Kind::lines),
      unicode_(environment.allows_unicode()) {}

void DownloadDisplay::show(const hub::DownloadProgress& progress, const std::optional<hub::Pause>& pause) {
  const auto now = std::chrono::steady_clock::now();
  rate_.add(now, progress.fetched);
  file_rates_.resize(progress.files.size());
  std::vector<double> rates;
  for (std::size_t at = 0; at < progress.files.size(); ++at) {
    file_rates_[at].add(now, progress.files[at].fetched);
    rates.push_back(file_rates_[at].per_second());
  }
  if (kind_ != Kind::screen) waits_.show(pause);
  if (kind_ == Kind::lines) {
    const int tenths = percent(progress.have, progress.size) / 10;
    if (tenths > printed_tenths_) say(total_line(progress, rate_.per_second()) + "\n");
    printed_tenths_ = std::max(printed_tenths_, tenths);
  }
  if (kind_ != Kind::screen) return;
  const terminal::ScreenSize screen = terminal::screen_size(STDERR_FILENO);
  if (hidden_typing_) {
    hidden_typing_->renew();
  } else {
    hidden_typing_.emplace(STDERR_FILENO);
  }
  std::string text = to_first_line(drawn_, screen.columns);
  drawn_ = download_lines(
      progress, rates, rate_.per_second(),
      {.columns = screen.columns, .files = std::clamp(screen.rows - 4, 1, 8), .unicode = unicode_}, pause);
  if (!text.empty()) text += "\x1b[J";  // also what is left of lines that the terminal broke
  for (const std::string& line : drawn_) text += line + "\x1b[K\n";
  say(text);
}

void DownloadDisplay::clear() {
  hidden_typing_.reset();
  if (drawn_.empty()) return;
  say(to_first_line(drawn_, terminal::screen_size(STDERR_FILENO).columns) + "\x1b[J");
  drawn_.clear();
}

}  // namespace inferno
