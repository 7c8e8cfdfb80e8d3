// From a weight's format and layout at run time to a type that decodes it: the only place that lists them.
#pragma once

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels.h"

namespace inferno::cuda {

template <class Visitor>
void for_layout(const WeightView& weight, Visitor&& visitor) {
  if (weight.layout == Layout::split) {
    if (weight.format == WeightFormat::q8_0) return visitor(SplitQ8_0{weight.cols});
    if (weight.format == WeightFormat::q6_k) return visitor(SplitQ6_K{weight.cols});
    return visitor(SplitMxfp4{weight.cols});
  }
  visit(weight.format, [&]<Block B>(B) { visitor(Stored<B>{}); });
}

}  // namespace inferno::cuda
