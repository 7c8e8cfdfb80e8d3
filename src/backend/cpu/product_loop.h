// One loop over all rows (or panels) of a matrix product: those of every weight part for every batch, end to
// end, so that threads share the work evenly however it is divided.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backend/cpu/operations.h"

namespace inferno::cpu {

struct LoopSegment {
  const ExpertBatch* batch;
  int batch_index;
  const Weight* weight;
  int column;          // output column of the part's first row
  std::int64_t begin;  // first step of the loop
  int count;           // number of steps
};

class ProductLoop {
 public:
  // count_of(weight) is the number of steps that a weight takes; `first_column` the output column of the
  // first part's first row.
  template <class CountOf>
  ProductLoop(std::span<const Weight* const> parts, std::span<const ExpertBatch> batches, int first_column,
              const CountOf& count_of) {
    for (std::size_t b = 0; b < batches.size(); ++b) {
      int column = first_column;
      for (const Weight* part : parts) {
        segments_.push_back({&batches[b], static_cast<int>(b), part, column, total_, count_of(*part)});
        column += part->rows;
        total_ += segments_.back().count;
      }
    }
  }

  std::int64_t total() const { return total_; }

  // visit(segment, begin, end) for each segment that [begin, end) touches, in steps of that segment.
  template <class Visit>
  void each(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    auto at = std::upper_bound(segments_.begin(), segments_.end(), begin,
                               [](std::int64_t step, const LoopSegment& s) { return step < s.begin; }) -
              1;
    for (; at != segments_.end() && at->begin < end; ++at) {
      const auto first = static_cast<int>(std::max<std::int64_t>(begin - at->begin, 0));
      const auto last = static_cast<int>(std::min<std::int64_t>(end - at->begin, at->count));
      if (first < last) visit(*at, first, last);
    }
  }

 private:
  std::vector<LoopSegment> segments_;
  std::int64_t total_ = 0;
};

}  // namespace inferno::cpu
