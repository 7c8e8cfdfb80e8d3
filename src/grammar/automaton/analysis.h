// What is known about the parts of a constraint before it becomes a machine.
#pragma once

#include <vector>

#include "grammar/budget.h"
#include "grammar/rules.h"

namespace inferno::grammar {

class Analysis {
 public:
  // Rewrites repeats of parts that may be empty into repeats of parts that are not: a counter must not be
  // advanced without a byte. Refuses undefined rules, left recursion, and a root without a finite text.
  Analysis(Rules& rules, Part root, Budget& budget);

  bool may_be_empty(Part part) const { return empty_[static_cast<std::size_t>(part)]; }
  // Whether any finite text belongs to the part. Other parts are left out of the machine.
  bool is_possible(Part part) const { return possible_[static_cast<std::size_t>(part)]; }

 private:
  void settle(std::vector<bool>& known, bool (Analysis::*test)(Part) const);
  bool test_empty(Part part) const;
  bool test_possible(Part part) const;
  bool object_is_possible(const ObjectParts& parts) const;
  bool array_is_possible(const ArrayParts& parts) const;
  void refuse_left_recursion();
  std::vector<std::uint32_t> left_references(Part body) const;

  Rules& rules_;
  Budget& budget_;
  std::vector<bool> empty_;
  std::vector<bool> possible_;
};

}  // namespace inferno::grammar
