#include "server/admission/waiting_room.h"

#include <utility>

namespace inferno::server {

bool WaitingRoom::keep(std::size_t bytes, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (is_open_ || tasks_.size() >= max_requests || bytes > max_bytes - bytes_) return false;
  bytes_ += bytes;
  tasks_.push_back(std::move(task));
  return true;
}

void WaitingRoom::let_in() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

}  // namespace inferno::server
