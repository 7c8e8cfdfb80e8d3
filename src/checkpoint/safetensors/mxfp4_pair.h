// gpt-oss stores MXFP4 as two tensors: 16 bytes of codes per block, and the blocks' scales. Everyone else
// here reads blocks of 17 bytes, in GGUF's order of nibbles (tensor/blocks/quants_32.h).
#pragma once

#include <cstdint>
#include <memory>

#include "base/byte_source.h"
#include "tensor/stored_tensor.h"

namespace inferno {

// `blocks` holds 16 bytes and `scales` one byte for each of the same number of blocks.
std::shared_ptr<const ByteSource> interleave_mxfp4(StoredTensor blocks, StoredTensor scales);

}  // namespace inferno
