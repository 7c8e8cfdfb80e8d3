// Steps of one token whose products stream their weights, and what one kernel leaves to the next.
// A norm needs the whole row before any of its elements is right. So the kernel that adds a branch to the
// residual stream writes rows without the factor 1 / rms, and the kernel that reads them multiplies its own
// sums by it. NormedRows carries the missing factor from one operation to the next.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/kernels/linear/stream.h"
#include "backend/cuda/memory.h"

namespace inferno::cuda {

class SingleToken {
 public:
  SingleToken(const Queue& queue, DeviceMemory& memory) : queue_(queue), room_(memory, "norms and routes") {}

  // Allocates what the kernels leave for one another; to be called before graphs are recorded.
  void reserve();
  static std::size_t reserved_bytes();
  // Multiplies the rows by the factor they lack, for kernels that cannot.
  Matrix finish(const NormedRows& in);

  // For the problems that the tables' stream rows take.
  NormedRows linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights, bool sums_logits);
  NormedRows mix_experts_add_norm(const AfterBranch& then, const NormedRows& in, Matrix hidden,
                                  const MoeMlp& spec, const MoeWeights& weights);

 private:
  struct Room {
    float *squares, *shares;
    std::int64_t* router_sums;
    std::int32_t* chosen;
  };
  static Room divide(Parts& parts);
  Room room();
  AddTo add_to(const AfterBranch& then, bool sums_logits);
  NormedRows delayed(const AfterBranch& then, const Weight* router);
  void drop_logits();

  const Queue& queue_;
  Workspace room_;
  bool has_logits_ = false;  // Room::router_sums wait to be read; otherwise they are zero
};

inline StreamInput stream_input(const NormedRows& in) {
  return {in.unfinished(), in.delayed().value_or(DelayedNorm{})};
}

}  // namespace inferno::cuda
