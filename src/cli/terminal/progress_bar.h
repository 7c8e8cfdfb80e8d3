// How far a long job is, on one line of stderr that goes away at the end. Silent where stderr is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace inferno {

// "[#####     ] 5/10, 123 tokens/s"
std::string progress_line(std::size_t done, std::size_t total, double tokens_per_second);

class ProgressBar {
 public:
  explicit ProgressBar(std::size_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::size_t done, std::size_t tokens);  // draws at most ten times a second

 private:
  std::size_t total_;
  bool is_shown_;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace inferno
