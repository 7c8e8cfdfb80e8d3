#include "engine/waiting_line.h"

#include <algorithm>

namespace inferno {

void WaitingLine::add(Sequence* sequence) {
  const auto known = by_name_.find(sequence->client);
  if (known == by_name_.end()) {
    clients_.push_back({sequence->client, {sequence}});
    by_name_[sequence->client] = std::prev(clients_.end());
  } else {
    known->second->waiting.push_back(sequence);
  }
  ++size_;
}

void WaitingLine::add_preempted(Sequence* sequence) {
  preempted_[sequence->id] = sequence;
  ++size_;
}

Sequence* WaitingLine::front() const {
  if (!preempted_.empty()) return preempted_.begin()->second;
  return clients_.empty() ? nullptr : clients_.front().waiting.front();
}

void WaitingLine::pop() {
  --size_;
  if (!preempted_.empty()) {
    preempted_.erase(preempted_.begin());
    return;
  }
  Client& client = clients_.front();
  client.waiting.pop_front();
  if (client.waiting.empty()) {
    by_name_.erase(client.name);
    clients_.pop_front();
  } else {
    clients_.splice(clients_.end(), clients_, clients_.begin());
  }
}

void WaitingLine::remove(const Sequence* sequence) {
  if (preempted_.erase(sequence->id) > 0) {
    --size_;
    return;
  }
  const auto known = by_name_.find(sequence->client);
  if (known == by_name_.end()) return;
  std::deque<Sequence*>& waiting = known->second->waiting;
  const auto at = std::find(waiting.begin(), waiting.end(), sequence);
  if (at == waiting.end()) return;
  waiting.erase(at);
  --size_;
  if (!waiting.empty()) return;
  clients_.erase(known->second);
  by_name_.erase(known);
}

}  // namespace inferno
