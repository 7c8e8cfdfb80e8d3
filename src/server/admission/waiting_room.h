// Requests that arrived while the model was loading, kept until it can answer them. Used where the listening
// socket outlives the server (socket activation): clients then see a slow answer instead of a refusal.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace inferno::server {

// Thread-safe.
class WaitingRoom {
 public:
  static constexpr std::size_t max_requests = 1024;
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;  // of request bodies together

  // Keeps `task` for let_in(). False if there is nothing to wait for or no room left: the caller goes on
  // itself.
  bool keep(std::size_t bytes, std::function<void()> task);
  // Runs what was kept, in the order of arrival, on the calling thread; keep() returns false from now on.
  void let_in();

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::size_t bytes_ = 0;
  bool is_open_ = false;
};

}  // namespace inferno::server
