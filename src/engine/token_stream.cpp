#include "engine/token_stream.h"

#include <utility>

namespace inferno {

std::optional<Event> TokenStream::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto is_ready = [this] { return !events_.empty() || open_ <= 0; };
  // A reader that lags need not look at the clock. Even a wait of no time may take the kernel 50 us, the
  // slack of its timers.
  if (patience > patience.zero() && !is_ready()) ready_.wait_for(lock, patience, is_ready);
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool TokenStream::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (open_ <= 0) return false;
  if (std::holds_alternative<Failed>(event)) open_ = 0;
  if (std::holds_alternative<Finished>(event)) --open_;
  events_.push_back(std::move(event));
  return true;
}

void TokenStream::wake() {
  ready_.notify_all();
  if (wake_) wake_();
}

}  // namespace inferno
