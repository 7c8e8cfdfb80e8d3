// Which tensors of a checkpoint do not reach the kernels as their files have them, and why.
#pragma once

#include <span>
#include <vector>

#include "model/tensor_plan.h"
#include "model/weights.h"

namespace inferno {

// `packed` has the parts of all slots that are no vectors, in order.
std::vector<Conversion> conversions(const TensorPlan& plan, const Backend& backend,
                                    std::span<const Weight> packed);

}  // namespace inferno
