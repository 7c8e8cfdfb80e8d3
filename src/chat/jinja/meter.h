// Counts what one rendering spends and ends it when a budget is passed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "chat/jinja/budgets.h"

namespace inferno::jinja {

// One rendering, one thread. Every method throws Error{unsupported} naming the budget that is passed.
class Meter {
 public:
  // `template_name` is for messages.
  Meter(const Budgets& budgets, std::string template_name);

  void step(std::int64_t count = 1) {
    steps_ += count;
    if (steps_ >= next_look_) look();
  }
  // Work proportional to the length of a text.
  void touch(std::size_t bytes) { step(1 + static_cast<std::int64_t>(bytes / 64)); }

  void take(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept { heap_ -= bytes; }

  void check_output(std::size_t bytes) const;
  void check_depth(int depth, const char* of_what) const;
  const Budgets& budgets() const { return budgets_; }

  // Where the evaluator is, so that an error can name its line.
  void at_line(int line) { line_ = line; }
  int line() const { return line_; }
  const std::string& template_name() const { return template_name_; }

 private:
  void look();
  [[noreturn]] void exceeded(const std::string& budget) const;

  Budgets budgets_;
  std::string template_name_;
  std::chrono::steady_clock::time_point deadline_;
  std::int64_t steps_ = 0;
  std::int64_t next_look_ = 0;  // the clock is read every few thousand steps only
  std::size_t heap_ = 0;
  int line_ = 0;
};

// The bytes a heap object of the rendering holds. Without a meter (constants of the template, which
// outlive renderings) nothing is counted.
class HeapCharge {
 public:
  HeapCharge() = default;
  HeapCharge(Meter* meter, std::size_t bytes) : meter_(meter) { resize(bytes); }
  ~HeapCharge() {
    if (meter_ != nullptr) meter_->give_back(bytes_);
  }
  HeapCharge(const HeapCharge&) = delete;
  HeapCharge& operator=(const HeapCharge&) = delete;

  void resize(std::size_t bytes) {
    if (meter_ == nullptr) return;
    if (bytes > bytes_) meter_->take(bytes - bytes_);
    if (bytes < bytes_) meter_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  Meter* meter_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace inferno::jinja
