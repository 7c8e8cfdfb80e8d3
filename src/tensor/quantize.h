// Floats to stored weights: the inverse of decode(), for writing a model.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tensor/format.h"

namespace inferno {

// f32, f16, bf16, q8_0, q4_0, q4_k and q6_k; the others are only read.
bool can_quantize(WeightFormat format);

// The index of the first value that the format cannot hold: not a number, infinite, or so large that it or
// its block's scale would become infinite. nullopt if all values fit.
std::optional<std::size_t> first_unfit(WeightFormat format, std::span<const float> values);

// Rounds to the nearest value the format can represent; q4_k and q6_k search for the scales with the smallest
// error, as llama.cpp does. `in` is whole blocks of fitting values, `out` exactly as many blocks, at any
// address. Threads may quantize different spans at once.
void quantize(WeightFormat format, std::span<const float> in, std::span<std::byte> out);

}  // namespace inferno
