#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace inferno {
namespace {

constexpr std::size_t longest = 64;  // the time grows with the product of both lengths

// Letters to insert, delete, replace or swap with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& best = steps[i][j];
      if (i == 0 || j == 0) {
        best = i + j;
        continue;
      }
      best = std::min(
          {steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string> candidates) {
  if (typed.size() > longest) return "";
  const std::size_t limit = typed.size() < 5 ? 1 : 2;
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t steps = distance(typed, candidate);
    if (steps >= best_distance) continue;
    best = candidate;
    best_distance = steps;
  }
  return best;
}

std::vector<std::string> nearest_of(std::string_view typed, std::span<const std::string> candidates,
                                    std::size_t count) {
  std::vector<std::size_t> order(candidates.size()), steps;
  std::iota(order.begin(), order.end(), 0);
  for (const std::string& candidate : candidates)
    steps.push_back(distance(typed.substr(0, longest), std::string_view(candidate).substr(0, longest)));
  std::ranges::stable_sort(order, {}, [&](std::size_t index) { return steps[index]; });
  order.resize(std::min(count, order.size()));
  std::ranges::sort(order);
  std::vector<std::string> chosen;
  for (const std::size_t index : order) chosen.push_back(candidates[index]);
  return chosen;
}

}  // namespace inferno
