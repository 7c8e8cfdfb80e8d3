// Stored weights in device memory, in the layout the kernels read fastest.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/kernels/linear/weights.h"
#include "backend/cuda/memory.h"

namespace inferno::cuda {

class Packer {
 public:
  // `rearranges`: to FormatTraits::layout; otherwise every weight stays as stored.
  Packer(const Queue& queue, DeviceMemory& memory, Staging& staging, bool rearranges);

  Weight pack(const HostWeight& source);
  Layout layout_for(WeightFormat format) const {
    return rearranges_ ? traits_of(format).layout : Layout::stored;
  }
  // Memory for a weight whose shape is known, zeroed.
  void allocate(Weight& weight, Layout layout);
  // Bytes that hold the largest weight so far, or a useful part of it, decoded to bf16.
  std::size_t expanded_bytes() const { return expanded_bytes_; }
  void finish() { room_ = {}; }  // frees what only packing needs

 private:
  // The weight is allocated in its layout.
  bool upload_rearranged(Weight& weight, const HostWeight& source);

  const Queue& queue_;
  DeviceMemory& memory_;
  Staging& staging_;
  bool rearranges_;
  Buffer room_;  // stored blocks on their way
  std::size_t expanded_bytes_ = 0;
};

}  // namespace inferno::cuda
