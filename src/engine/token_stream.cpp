#include "engine/token_stream.h"

#include <utility>

namespace inferno {

std::optional<Event> TokenStream::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  // Even a wait of no time may take the kernel 50 us, the slack of its timers.
  if (patience > patience.zero()) {
    ready_.wait_for(lock, patience, [this] { return !events_.empty() || open_ <= 0; });
  }
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void TokenStream::publish(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (open_ <= 0) return;
    if (std::holds_alternative<Failed>(event)) open_ = 0;
    if (std::holds_alternative<Finished>(event)) --open_;
    events_.push_back(std::move(event));
  }
  ready_.notify_all();
  if (wake_) wake_();
}

}  // namespace inferno
