// Attention and the rotation of queries and keys.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

void rotate_and_store(const Queue& queue, Matrix qkv, Matrix rope_table, const AttentionCall& call);

// A block for each row, group of heads and stretch of positions. The stretches' results meet in `partial`.
struct AttendScratch {
  float* partial = nullptr;          // attend_partial_floats() of them
  std::uint32_t* tickets = nullptr;  // one for each row and group, all zero before and after
  std::int64_t partial_floats = 0, ticket_count = 0;
};
constexpr int attend_max_splits = 32;
void attend_rows(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call,
                 const AttendScratch& scratch);
// One new token for each sequence, its rotation included: only what takes_decode() accepts. Where
// Queue::max_cluster is 1 the stretches' results meet in `scratch`.
// Blocks, on the current device, which must know clusters.
int max_decode_cluster(int multiprocessors, int shared_limit);
bool takes_decode(const AttentionSpec& spec, Matrix rope_table, const StepInputs& step, DType cache);
void attend_decode(const Queue& queue, Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call,
                   const AttendScratch& scratch);
// Tiles of 64 queries with tensor cores; bf16 only, and only what takes_tiles() accepts.
bool takes_tiles(const AttentionSpec& spec);
void attend_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call);

}  // namespace inferno::cuda
