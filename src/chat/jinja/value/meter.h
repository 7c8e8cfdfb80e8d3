// Limits on what a template may cost, and the meter that enforces them. A template is a program that came
// with a model file, so every resource it can spend has a limit, and exceeding one is an ordinary error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace inferno::jinja {

struct Budgets {
  std::size_t source_bytes = std::size_t{1} << 20;
  std::int64_t steps = 5'000'000;  // nodes evaluated, items visited, and one per 64 bytes of text touched
  int depth = 128;                 // nesting of source, of macro calls and of values
  std::int64_t range = 100'000;    // items of one range(), the limit of Jinja2's own sandbox
  std::size_t output_bytes = std::size_t{8} << 20;
  std::size_t heap_bytes = std::size_t{64} << 20;
  std::chrono::milliseconds cpu_time{500};  // of the thread: a busy machine is not the template's fault
};

// One per rendering, used by one thread. Methods throw Error{unsupported} naming the budget that is exceeded.
class Meter {
 public:
  // `template_name` is for messages.
  Meter(const Budgets& budgets, std::string template_name);

  void step(std::int64_t count = 1) {
    steps_ += count;
    if (steps_ >= next_check_) check_steps_and_clock();
  }
  // Work proportional to the length of a text.
  void touch(std::size_t bytes) { step(1 + static_cast<std::int64_t>(bytes / 64)); }

  void allocate(std::size_t bytes);
  void release(std::size_t bytes) noexcept { heap_ -= bytes; }

  void check_output(std::size_t bytes) const;
  void check_depth(int depth, const char* of_what) const;
  const Budgets& budgets() const { return budgets_; }

  // The line being evaluated, for messages.
  void at_line(int line) { line_ = line; }
  int line() const { return line_; }
  const std::string& template_name() const { return template_name_; }

 private:
  void check_steps_and_clock();
  [[noreturn]] void exceeded(const std::string& budget) const;

  Budgets budgets_;
  std::string template_name_;
  std::chrono::nanoseconds deadline_;  // CPU time of the thread
  std::int64_t steps_ = 0;
  std::int64_t next_check_ = 0;  // the clock is read only every few thousand steps
  std::size_t heap_ = 0;
  int line_ = 0;
};

// Ends the rendering with Error{unsupported} naming the template and the line.
[[noreturn]] void refuse(const Meter& meter, const std::string& problem);

// Counts the bytes of a heap object for as long as the object lives. Constants of the template outlive
// renderings; they have no meter and are not counted.
class HeapCharge {
 public:
  HeapCharge() = default;
  HeapCharge(Meter* meter, std::size_t bytes) : meter_(meter) { resize(bytes); }
  ~HeapCharge() {
    if (meter_ != nullptr) meter_->release(bytes_);
  }
  HeapCharge(const HeapCharge&) = delete;
  HeapCharge& operator=(const HeapCharge&) = delete;

  void resize(std::size_t bytes) {
    if (meter_ == nullptr) return;
    if (bytes > bytes_) meter_->allocate(bytes - bytes_);
    if (bytes < bytes_) meter_->release(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  Meter* meter_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace inferno::jinja
