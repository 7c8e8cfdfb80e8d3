// How far a download is: a few lines on a terminal that are drawn again and again, a line for each tenth
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "hub/download/download.h"

namespace inferno {

// On standard error; that nobody reads it is no reason to stop.
void say(std::string_view text);

// Bytes a second over the last seconds.
class Rate {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void add(Time now, std::uint64_t total);
  double per_second() const;  // 0 when nothing is known yet

 private:
  struct Sample {
    Time time;
    std::uint64_t total = 0;
  };
  std::deque<Sample> samples_;
};

std::string short_duration(double seconds);  // "33 s", "4 min 10 s", "2 h 05 min"

// The lines for a screen of that width: the files at work, `rows` of them at most, and the total.
std::vector<std::string> download_lines(const hub::DownloadProgress& progress,
                                        const std::vector<double>& file_rates, double rate, int columns,
                                        int rows);
// "42 %  5.8/13.8 GB  112 MB/s  1 min 10 s left"
std::string total_line(const hub::DownloadProgress& progress, double rate);

class DownloadDisplay {
 public:
  enum class Kind { silent, lines, screen };
  explicit DownloadDisplay(Kind kind) : kind_(kind) {}
  // The right one for standard error.
  static Kind kind_for_stderr(bool is_wanted);

  void show(const hub::DownloadProgress& progress);
  void clear();  // what was drawn, before something else is said

 private:
  Kind kind_;
  Rate rate_;
  std::vector<Rate> file_rates_;
  int drawn_ = 0;   // lines on the screen
  int shown_ = -1;  // tenths that were said
};

}  // namespace inferno
