// Stored weights in device memory, in the layout the kernels read fastest.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cuda/kernels/linear/weights.h"
#include "backend/cuda/memory.h"
#include "backend/weight_source.h"

namespace inferno::cuda {

class Packer {
 public:
  // `rearranges`: to FormatTraits::layout; otherwise every weight stays as stored.
  Packer(const Queue& queue, DeviceMemory& memory, Staging& staging, bool rearranges);

  Weight pack(const HostWeight& source);
  Layout layout_for(WeightFormat format) const {
    return rearranges_ ? traits_of(format).layout : Layout::stored;
  }
  // Memory for a weight whose shape and order of columns are known, zeroed.
  void allocate(Weight& weight, Layout layout);
  void upload_column_order(const Weight& weight);
  // Bytes that hold the largest weight so far, or a useful part of it, decoded to bf16.
  std::size_t expanded_bytes() const { return expanded_bytes_; }
  // The same for one weight.
  std::size_t expanded_bytes(const WeightShape& weight) const;
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

// Weights from their files into device memory: read by several threads, sent through pinned memory, put into
// the kernels' layout on the device. threads 0: as many as help. Waits until all weights are there.
void load_weights(const Queue& queue, Packer& packer, DeviceMemory& memory, std::span<Weight> to,
                  std::span<const WeightSource> from, int threads);

}  // namespace inferno::cuda
