// Random weights straight in their stored format, for benchmarks and tests that need a model's size and
// speed but not its knowledge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/format.h"

namespace inferno {

// Fills whole blocks with finite values of about zero mean and the given standard deviation, 0.001 to 1000,
// as far as the format has such values: integers are rounded, so that they want a deviation of at least one,
// and u8 holds magnitudes. Equal arguments give equal bytes; threads may fill different spans at once.
// `first_block`, a multiple of random_stretch: the span begins there in what one call would fill from 0 on.
constexpr std::uint64_t random_stretch = 32;
void fill_random(WeightFormat format, std::span<std::byte> blocks, float deviation, std::uint64_t seed,
                 std::uint64_t first_block = 0);

}  // namespace inferno
