// One loop over all weights of a product: the rows (or panels) of every part for every batch, end to end.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backend/cpu/operations.h"

namespace inferno::cpu {

struct Stretch {
  const ExpertBatch* batch;
  int batch_index;
  const Weight* weight;
  int column;          // of the output, where the part's rows begin
  std::int64_t begin;  // of the loop
  int count;
};

class Stretches {
 public:
  // count_of says how many steps of the loop a weight takes.
  template <class CountOf>
  Stretches(const Linear& weights, std::span<const ExpertBatch> batches, const CountOf& count_of) {
    for (std::size_t b = 0; b < batches.size(); ++b) {
      int column = 0;
      for (const Weight* part : weights.parts) {
        stretches_.push_back({&batches[b], static_cast<int>(b), part, column, total_, count_of(*part)});
        column += part->rows;
        total_ += stretches_.back().count;
      }
    }
  }

  std::int64_t total() const { return total_; }

  // visit(stretch, begin, end) for each stretch that [begin, end) touches, in steps of that stretch.
  template <class Visit>
  void each(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    auto at = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                               [](std::int64_t step, const Stretch& s) { return step < s.begin; }) -
              1;
    for (; at != stretches_.end() && at->begin < end; ++at) {
      const auto first = static_cast<int>(std::max<std::int64_t>(begin - at->begin, 0));
      const auto last = static_cast<int>(std::min<std::int64_t>(end - at->begin, at->count));
      if (first < last) visit(*at, first, last);
    }
  }

 private:
  std::vector<Stretch> stretches_;
  std::int64_t total_ = 0;
};

}  // namespace inferno::cpu
