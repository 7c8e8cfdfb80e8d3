// Products of one token: weights stream through a ring of shared memory in background copies that start
// before the kernel ahead has finished, and whatever follows the product is done where its sums are.
// Hopper and later. docs/kernels.md draws the ring.
#pragma once

#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {

constexpr int stream_max_active = 32, stream_max_experts = 128;

// residual += scale * product; out = gain * residual, with 1 / rms delayed.
struct AddTo {
  float* residual = nullptr;
  const float* gain = nullptr;
  float scale = 1.0f;
  float* squares = nullptr;             // [blocks]
  const Weight* router = nullptr;       // reads `out` next: its logits are summed on the way
  std::int64_t* router_sums = nullptr;  // [experts], see Routing
  std::int32_t* undecided = nullptr;    // [stream_max_active]: become -1 until experts are chosen
};

// What mix_experts chooses: in the kernel that first reads an expert.
struct Routing {
  // [stream_max_experts]: sums of logits, not yet multiplied by 1 / rms, in units of stream_route.cuh. All
  // zero unless they wait to be read; the kernel behind the one that reads them makes them zero again.
  std::int64_t* sums = nullptr;
  const float* bias = nullptr;
  int experts = 0, active = 0;
  bool renormalizes = true;
  std::int32_t* chosen = nullptr;  // [active]: written for the kernel behind, which reads it early
  float* shares = nullptr;
  float hidden_scale = 0.0f;  // stream_hidden_scale()
};

struct StreamInput {
  Matrix rows;       // one, or the `active` ones of chosen experts; f32 or bf16
  DelayedNorm norm;  // without squares: the rows are complete
};

// Multiplies the row by its 1 / rms after all, for kernels that do not know of it.
void finish_norm(const Queue& queue, Matrix row, const DelayedNorm& norm);

// Where activations have a limit and the product behind wants f16, the experts' hidden rows are f16
// multiplied by this. 0: they are bf16.
float stream_hidden_scale(const WeightView& down, const ActivationSpec& activation);

// For sums that nobody is going to read.
void clear_sums(const Queue& queue, std::int64_t* sums);

// Blocks that a product of so many rows is divided into: as many parts of squares come of it.
int stream_blocks(const Queue& queue, int rows);

bool has_stream(const Queue& queue, const WeightView& weight, int vectors);
bool stream_takes_router(const Queue& queue, const Weight& router);
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
