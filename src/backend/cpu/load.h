// Weights from their files into the layout of the kernels.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/memory.h"
#include "base/thread_pool.h"

namespace inferno::cpu {

// Reads the rows in pieces, each packed as soon as it is read, so that no weight is in memory twice. Rows
// that change places are read together. The threads share the pieces, because reading may be work: blocks
// that are made of several tensors, or rounded. `in_panels`: as panels.h describes, where the format has a
// panel. Error{unsupported} if the columns are not whole blocks; throws what reading throws.
Weight load_weight(ThreadPool& pool, Arena& memory, const WeightSource& source, bool in_panels);

}  // namespace inferno::cpu
