// Sequences that wait to be admitted. Clients take turns; each client's own come in order of arrival. Those
// that were preempted go before all others, the oldest first: they were already served once.
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
  // Whose turn it is; the same one until pop() or a preempted one comes.
  Sequence* front() const;
  void pop();
  void remove(const Sequence* sequence);

 private:
  struct Client {
    std::string name;
    std::deque<Sequence*> waiting;  // never empty
  };

  std::map<SequenceId, Sequence*> preempted_;
  std::list<Client> clients_;  // the first has its turn
  std::map<std::string, std::list<Client>::iterator> by_name_;
  int size_ = 0;
};

}  // namespace inferno
