// The two formats whose scales are searched for: their groups share six- or eight-bit scales under one f16
// factor, so a good choice is worth much more than in the simple ones.
#pragma once

#include "tensor/blocks/q4_k.h"
#include "tensor/blocks/q6_k.h"

namespace inferno {

void fill(blocks::Q4_K& block, const float* x);
void fill(blocks::Q6_K& block, const float* x);

}  // namespace inferno
