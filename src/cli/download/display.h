// Progress of a download: a few lines on a terminal that are redrawn, otherwise a line for every 10 %.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "hub/download/download.h"

namespace inferno {

// Writes to standard error and ignores failures: a closed stderr must not stop a download.
void say(std::string_view text);

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

// The lines for a screen with `columns`: at most `rows` files in progress, then the total.
std::vector<std::string> download_lines(const hub::DownloadProgress& progress,
                                        const std::vector<double>& file_rates, double rate, int columns,
                                        int rows);
// "42 %  5.8/13.8 GB  112 MB/s  1 min 10 s left"
std::string total_line(const hub::DownloadProgress& progress, double rate);

class DownloadDisplay {
 public:
  enum class Kind { silent, lines, screen };
  explicit DownloadDisplay(Kind kind) : kind_(kind) {}
  // Chooses by whether standard error is a terminal.
  static Kind kind_for_stderr(bool is_wanted);

  void show(const hub::DownloadProgress& progress);
  void clear();  // removes what was drawn, before other output

 private:
  Kind kind_;
  Rate rate_;
  std::vector<Rate> file_rates_;
  int drawn_lines_ = 0;
  int printed_tenths_ = -1;
};

}  // namespace inferno
