#include "engine/token_stream.h"

#include <utility>

namespace inferno {

std::optional<Event> TokenStream::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ready_.wait_for(lock, patience, [this] { return !events_.empty() || open_ <= 0; });
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void TokenStream::on_event(std::function<void()> wake) {
  std::function<void()> now;
  {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (!events_.empty()) now = wake_;
  }
  if (now) now();
}

void TokenStream::publish(Event event) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (open_ <= 0) return;
    if (std::holds_alternative<Failed>(event)) open_ = 0;
    if (std::holds_alternative<Finished>(event)) --open_;
    events_.push_back(std::move(event));
    wake = wake_;
  }
  ready_.notify_all();
  if (wake) wake();
}

}  // namespace inferno
