// Random weights in their stored format, for benchmarks and tests that need the size and speed of a model but
// not its knowledge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/format.h"

namespace inferno {

// Fills whole blocks with finite values of about zero mean and the given standard deviation, 0.001 to 1000.
// For integer formats the values are rounded, so the deviation should be at least one; u8 holds magnitudes.
// Equal arguments give equal bytes; threads may fill different spans at once. `first_block`, a multiple of
// random_chunk, is the index of the first block in a larger tensor that is filled in several calls.
constexpr std::uint64_t random_chunk = 32;
void fill_random(WeightFormat format, std::span<std::byte> blocks, float deviation, std::uint64_t seed,
                 std::uint64_t first_block = 0);

}  // namespace inferno
