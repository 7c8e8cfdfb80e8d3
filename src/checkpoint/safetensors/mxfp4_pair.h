// gpt-oss stores MXFP4 as two tensors: 16 bytes of codes per block, and the scales. All other code reads
// blocks of 17 bytes with GGUF's order of nibbles (tensor/blocks/quants_32.h), which this source produces.
#pragma once

#include <cstdint>
#include <memory>

#include "base/byte_source.h"
#include "tensor/stored_tensor.h"

namespace inferno {

// `blocks` has 16 bytes and `scales` one byte per block, for the same number of blocks.
std::shared_ptr<const ByteSource> interleave_mxfp4(StoredTensor blocks, StoredTensor scales);

}  // namespace inferno
