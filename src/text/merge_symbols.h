// The inner loop of byte-pair encoding.
#pragma once

#include <cstddef>
#include <vector>

#include "text/bpe.h"

namespace inferno {

// Merges symbols[first..] in place until no neighbours have a merge. n log n for long words.
void merge_symbols(std::vector<TokenId>& symbols, std::size_t first, const MergeTable& merges);

}  // namespace inferno
