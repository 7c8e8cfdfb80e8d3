// Products of one token: weights stream through a ring of shared memory in bulk copies that start before the
// previous kernel has finished, and the epilogue does what follows the product. Hopper and later;
// docs/kernels.md draws the ring.
#pragma once

#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {

// residual += scale * product; out = gain * residual, with 1 / rms delayed.
struct AddTo {
  float* residual = nullptr;
  const float* gain = nullptr;
  float scale = 1.0f;
  float* squares = nullptr;             // [blocks]
  const Weight* router = nullptr;       // reads `out` next, so its logits are summed here
  std::int64_t* router_sums = nullptr;  // [experts], see Routing
  std::int32_t* undecided = nullptr;    // [stream_max_active]: become -1 until experts are chosen
};

// The choice of experts, made in the kernel that first reads an expert.
struct Routing {
  // [stream_max_experts]: sums of logits, not yet multiplied by 1 / rms, in units of stream_call.cuh.
  // Zero unless they wait to be read; the kernel after the one that reads them sets them to zero again.
  std::int64_t* sums = nullptr;
  const float* bias = nullptr;
  int experts = 0, active = 0;
  bool renormalizes = true;
  std::int32_t* chosen = nullptr;  // [active]: for the next kernel, which reads it early
  float* shares = nullptr;
  float hidden_scale = 0.0f;  // stream_hidden_scale()
};

struct StreamInput {
  Matrix rows;       // one, or the `active` ones of chosen experts; f32 or bf16
  DelayedNorm norm;  // without squares: the rows are complete
};

// Multiplies the row by its 1 / rms, for kernels that do not.
void finish_norm(const Queue& queue, Matrix row, const DelayedNorm& norm);

// The factor of the experts' hidden rows if they are f16: if activations have a limit and the next product
// reads f16. 0: hidden rows are bf16.
float stream_hidden_scale(const WeightView& down, const ActivationSpec& activation);

// Sets Routing::sums to zero if no kernel will read them.
void clear_sums(const Queue& queue, std::int64_t* sums);

// out [1, columns]: columns of the parts from `column` on.
void stream_linear(const Queue& queue, std::span<const WeightView> parts, Matrix out, int column,
                   const StreamInput& in, const float* bias);
void stream_gated(const Queue& queue, std::span<const WeightView> gate_up, Matrix out, const StreamInput& in,
                  const float* bias, const ActivationSpec& activation);
void stream_add(const Queue& queue, const WeightView& weight, Matrix out, const StreamInput& in,
                const float* bias, const AddTo& add);
// out [active, hidden]
void stream_experts(const Queue& queue, std::span<const WeightView> gate_up, Matrix out,
                    const StreamInput& in, const Linear& linear, const ActivationSpec& activation,
                    const Routing& routing);
void stream_combine(const Queue& queue, const WeightView& down, Matrix out, const StreamInput& in,
                    const Linear& linear, const Routing& routing, const AddTo& add);

}  // namespace inferno::cuda
