// Weights back to float, block by block: what embeddings, tests and generic kernels read.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/format.h"

namespace inferno {

// Decodes out.size() elements, a multiple of block_elements(format), from exactly as many blocks. The blocks
// may start at any address.
void decode(WeightFormat format, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace inferno
