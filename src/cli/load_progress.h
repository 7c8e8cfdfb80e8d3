// Watches a model being read: how many bytes of how many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"

namespace inferno {

using ReportProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// The same checkpoint, which reports what is read from it, at most ten times a second. The total is what was
// asked for until then; loading asks for every tensor before it reads the first. `report` may be called from
// any thread that reads, never from two at once.
std::unique_ptr<Checkpoint> watched(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report);

// "45 % of 13.8 GB, 9.31 GB/s"
std::string load_line(std::uint64_t done, std::uint64_t total, double seconds);

// A line on stderr that goes away when loading is over. Says nothing where stderr is no terminal.
class LoadMeter {
 public:
  explicit LoadMeter(const std::string& name);
  ~LoadMeter();
  LoadMeter(const LoadMeter&) = delete;
  LoadMeter& operator=(const LoadMeter&) = delete;

  void show(std::uint64_t done, std::uint64_t total) const;

 private:
  std::string name_;
  bool is_shown_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace inferno
