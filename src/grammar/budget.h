// What compiling one constraint may cost. Constraints come from strangers, so that everything that can grow
// faster than its input asks here first.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <stop_token>

#include "base/thread_time.h"
#include "grammar/refusal.h"

namespace inferno::grammar {

struct Limits {
  std::chrono::milliseconds time{1000};
  std::size_t bytes = std::size_t{64} << 20;
};

class Budget {
 public:
  explicit Budget(Limits limits = {}, std::stop_token cancel = {})
      : limits_(limits), cancel_(std::move(cancel)), started_(thread_time()) {}

  // Refuses when the time or the memory is used up, or the work was cancelled. Cheap: looks at the clock
  // once in a while only.
  void spend(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > limits_.bytes)
      refuse(RefusalKind::limit, fmt::format("compiling needs more than {} MiB (limit {} MiB)", bytes_ >> 20,
                                             limits_.bytes >> 20));
    if (++calls_ % 256 == 0) check_time();
  }
  void check_time() const {
    if (cancel_.stop_requested()) fail(ErrorKind::invalid_request, "compiling the constraint was cancelled");
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(thread_time() - started_);
    if (spent > limits_.time)
      refuse(RefusalKind::limit, fmt::format("compiling takes longer than {} ms (limit {} ms)", spent.count(),
                                             limits_.time.count()));
  }

 private:
  Limits limits_;
  std::stop_token cancel_;
  std::chrono::nanoseconds started_;  // thread_time(): compiling stays on one thread
  std::size_t bytes_ = 0;
  unsigned calls_ = 0;
};

}  // namespace inferno::grammar
