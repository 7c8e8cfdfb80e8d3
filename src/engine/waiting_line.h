// Sequences that wait to be admitted. Clients take turns; sequences of one client go in order of arrival.
// Preempted sequences go before all others, oldest first, because they were already running.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <string>

#include "engine/sequence.h"

namespace inferno {

class WaitingLine {
 public:
  bool empty() const { return size_ == 0; }
  int size() const { return size_; }

  void add(Sequence* sequence);
  void add_preempted(Sequence* sequence);
  // The next sequence to admit: the same until pop(), or until a preempted sequence is added.
  Sequence* front() const;
  void pop();
  void remove(const Sequence* sequence);

 private:
  struct Client {
    std::string name;
    std::deque<Sequence*> waiting;  // never empty
  };

  std::map<SequenceId, Sequence*> preempted_;
  std::list<Client> clients_;  // the first is next
  std::map<std::string, std::list<Client>::iterator> by_name_;
  int size_ = 0;
};

}  // namespace inferno
