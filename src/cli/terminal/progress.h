// Progress of a long job on one line of stderr, which the destructor erases. Callers use these only if stderr
// is a terminal whose lines may be redrawn (Environment::allows_redrawing).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace inferno {

// "[#####     ] 5/10, 123 tokens/s"
std::string progress_line(std::size_t done, std::size_t total, double tokens_per_second);

// "45 % of 13.8 GB, 9.31 GB/s"
std::string load_line(std::uint64_t done, std::uint64_t total, double seconds);

class ProgressBar {
 public:
  explicit ProgressBar(std::size_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::size_t done, std::size_t tokens);  // draws the first time, then at most ten times a second

 private:
  std::size_t total_;
  std::chrono::steady_clock::time_point start_;
  std::optional<std::chrono::steady_clock::time_point> drawn_;
};

// "loading NAME … 45 % of 13.8 GB, 9.31 GB/s"
class LoadMeter {
 public:
  explicit LoadMeter(const std::string& name);
  ~LoadMeter();
  LoadMeter(const LoadMeter&) = delete;
  LoadMeter& operator=(const LoadMeter&) = delete;

  void show(std::uint64_t done, std::uint64_t total) const;

 private:
  std::string name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace inferno
