// Requests that were accepted and have not begun, counted by client, so that one client cannot keep the
// others out of a full queue, and the answers of those that have begun: both under one lock, so that no
// request is missing from both counts while it begins. Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace inferno {

enum class QueueLimit { bounded, unbounded };

class WaitingCount {
 public:
  // `max_waiting` requests may wait while `max_running` answers are computed.
  WaitingCount(int max_waiting, int max_running) : max_waiting_(max_waiting), max_running_(max_running) {}

  // False if the queue is full. A client that has no request in it is still accepted, up to twice the limit.
  bool has_room(const std::string& client) const {
    const std::lock_guard lock(mutex_);
    return is_accepted(client);
  }

  // Counts the request, which asks for `choices` answers, if has_room() or the queue is unbounded for it.
  bool add(const std::string& client, int choices, QueueLimit limit) {
    const std::lock_guard lock(mutex_);
    if (limit == QueueLimit::bounded && !is_accepted(client)) return false;
    ++by_client_[client];
    ++total_;
    waiting_answers_ += choices;
    return true;
  }

  // The request will not begin: undoes one add().
  void remove(const std::string& client, int choices) {
    const std::lock_guard lock(mutex_);
    leave(client, choices);
  }

  // The request waits no more; its answers are being computed.
  void begin(const std::string& client, int choices) {
    const std::lock_guard lock(mutex_);
    leave(client, choices);
    running_answers_ += choices;
  }

  // `answers` of requests that have begun have ended.
  void end(int answers) {
    const std::lock_guard lock(mutex_);
    running_answers_ -= answers;
  }

  int total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  // Requests that the next step can admit do not count as waiting: a burst on an idle engine fills its slots
  // first. A request for several answers may take that many slots.
  bool is_accepted(const std::string& client) const {
    const int more_answers = waiting_answers_ - total_;
    const int limit = max_waiting_ + std::max(0, max_running_ - running_answers_ - more_answers);
    return total_ < limit || (total_ < 2 * limit && !by_client_.contains(client));
  }

  void leave(const std::string& client, int choices) {
    const auto found = by_client_.find(client);
    if (--found->second == 0) by_client_.erase(found);
    --total_;
    waiting_answers_ -= choices;
  }

  const int max_waiting_, max_running_;
  mutable std::mutex mutex_;
  std::map<std::string, int> by_client_;
  int total_ = 0;            // requests
  int waiting_answers_ = 0;  // that they ask for
  int running_answers_ = 0;  // of requests that have begun; also those that wait for a slot
};

}  // namespace inferno
