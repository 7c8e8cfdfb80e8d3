// Which of several names was meant by one that is none of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

// The candidate that differs from `typed` by at most two letters (one for short words), the nearest first;
// empty if there is none.
std::string nearest(std::string_view typed, std::span<const std::string> candidates);

// At most `count` candidates, those that differ least from `typed`, in their own order.
std::vector<std::string> nearest_of(std::string_view typed, std::span<const std::string> candidates,
                                    std::size_t count);

}  // namespace inferno
