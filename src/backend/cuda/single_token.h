// Steps of one token: which products stream their weights, and what one kernel leaves undone for the next.
// A norm needs the whole row before any element of it is right. So the kernel that adds a branch to the
// residual writes rows without 1 / rms, and whoever reads them multiplies its own sums by it.
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
  // Whether weights of this kind stream for such an input.
  bool takes(Matrix in, const WeightView& weight) const;
  // The rows with what they lack.
  StreamInput input(Matrix in) const;
  // Rows that some other kernel is about to read.
  void finish(Matrix in);
  // Somebody has written these rows anew.
  void forget(Matrix out);

  // False, with nothing done, when these do not fit.
  bool linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights);
  bool mix_experts_add_norm(const AfterBranch& then, Matrix in, Matrix hidden, const MoeMlp& spec,
                            const MoeWeights& weights);

 private:
  struct Room {
    float *squares, *shares;
    std::int64_t* router_sums;
    std::int32_t* chosen;
  };
  Room room();
  bool can_add(const AfterBranch& then, const Linear& weights, int vectors) const;
  AddTo add_to(const AfterBranch& then);
  void delay(const AfterBranch& then, const Weight* router);
  void drop_logits();

  const Queue& queue_;
  Workspace room_;
  // The rows that lack 1 / rms, and the router whose logits lie ready for them: without one, the sums of
  // logits are zero.
  const std::byte* rows_ = nullptr;
  DelayedNorm norm_;
  const Weight* router_ = nullptr;
};

}  // namespace inferno::cuda
