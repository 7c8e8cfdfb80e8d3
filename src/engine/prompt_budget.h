// How many rows of prompts a step gets beside answers, so that it does not make them wait too long.
#pragma once

#include <algorithm>

namespace inferno {

class PromptBudget {
 public:
  // max_seconds 0: always max_rows.
  PromptBudget(int max_rows, double max_seconds)
      : max_rows_(max_rows), rows_(max_rows), max_seconds_(max_seconds) {}

  int rows() const { return rows_; }

  // A step with answers and so many rows of prompts took so long. A slow one shrinks the budget at once, in
  // proportion; fast ones that used all of it let it grow again step by step, because the answers' contexts
  // and the batch change slowly.
  void note(int prompt_rows, double seconds) {
    if (max_seconds_ <= 0.0 || prompt_rows == 0) return;
    if (seconds > max_seconds_) {
      rows_ = std::clamp(static_cast<int>(prompt_rows * max_seconds_ / seconds),
                         std::min(min_rows, max_rows_), rows_);
    } else if (prompt_rows >= rows_ && seconds < 0.8 * max_seconds_) {
      rows_ = std::min(max_rows_, rows_ + rows_ / 4);
    }
  }

 private:
  // Prompts must get done, too: answers alone may already take longer than the limit.
  static constexpr int min_rows = 256;
  int max_rows_, rows_;
  double max_seconds_;
};

}  // namespace inferno
