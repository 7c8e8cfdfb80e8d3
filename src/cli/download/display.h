// Progress of a download: a few lines on a terminal that are redrawn, otherwise a line for every 10 %.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"
#include "cli/terminal/screen.h"
#include "hub/download/download.h"
#include "hub/http/http.h"

namespace inferno {

// Bytes a second over the last seconds.
class Rate {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void add(Time now, std::uint64_t total);
  double per_second() const;  // 0 before the second sample

 private:
  struct Sample {
    Time time;
    std::uint64_t total = 0;
  };
  std::deque<Sample> samples_;
};

std::string short_duration(double seconds);  // "33 s", "4 min 10 s", "2 h 05 min"

// "waiting 4 s, try 2 of 8: huggingface.co: asks to wait (status 429)"
std::string pause_text(const hub::Pause& pause);

struct DisplayShape {
  int columns = 80;
  int files = 8;        // at most this many files in progress
  bool unicode = true;  // a bar of blocks, otherwise of # and -
};

// The lines for a screen: files in progress, the total, and what is waited for. No line is wider than the
// screen: the bar goes first, then names are shortened, then whole figures are left out of a file's line.
// The total is never shortened; it takes two lines if it must.
std::vector<std::string> download_lines(const hub::DownloadProgress& progress,
                                        const std::vector<double>& file_rates, double rate,
                                        const DisplayShape& shape,
                                        const std::optional<hub::Pause>& pause = {});
// "42 %  5.8 GB of 13.8 GB  112 MB/s  1 min 10 s left"
std::string total_line(const hub::DownloadProgress& progress, double rate);

// Moves from below lines that were drawn to the start of the first, on a screen that may have become narrower
// since: terminals break lines that no longer fit. Empty if there are no lines.
std::string to_first_line(const std::vector<std::string>& lines, int screen_columns);

// Prints a line for each wait of at least half a second that has not been announced.
class WaitNotice {
 public:
  void show(const std::optional<hub::Pause>& pause);

 private:
  std::string said_;
};

class DownloadDisplay {
 public:
  enum class Kind { silent, lines, screen };
  DownloadDisplay(Kind kind, bool unicode) : kind_(kind), unicode_(unicode) {}
  // For standard error: silent unless wanted, and drawn if it is a terminal that can be redrawn.
  DownloadDisplay(const Environment& environment, bool is_wanted);

  void show(const hub::DownloadProgress& progress, const std::optional<hub::Pause>& pause);
  void clear();  // removes what was drawn, before other output

 private:
  Kind kind_;
  bool unicode_;
  WaitNotice waits_;
  Rate rate_;
  std::vector<Rate> file_rates_;
  std::vector<std::string> drawn_;
  std::optional<terminal::HiddenTyping> hidden_typing_;  // while lines are drawn
  int printed_tenths_ = -1;
};

}  // namespace inferno
