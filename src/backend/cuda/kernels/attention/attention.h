// Attention and the rotation of queries and keys.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

void rotate_and_store(const Queue& queue, Matrix qkv, Matrix rope_table, const AttentionCall& call);

// The kernels of attend() leave out the first `decodes` sequences of a step, which have one row each, where
// attend_decode() computes these. The matrices have the rows of all sequences.

// Attention of single rows: a block for each row, group of heads and range of positions. The results of
// the ranges are combined in `partial`.
struct AttendScratch {
  float* partial = nullptr;          // [partial_floats]
  std::uint32_t* tickets = nullptr;  // [ticket_count]: one for each row and group, zero before and after
  std::int64_t partial_floats = 0, ticket_count = 0;
};
constexpr int attend_max_splits = 32;
void attend_rows(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes,
                 const AttendScratch& scratch);
// The largest cluster of attend_decode() that the current device, Hopper or later, can place.
int max_decode_cluster(int multiprocessors, int shared_limit);
// One new token for each sequence, with its rotation; beside others `out` has only the rows of the first
// ones, which are computed. If Queue::max_cluster is 1, the results of the ranges are reduced in `scratch`.
void attend_decode(const Queue& queue, Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call,
                   const AttendScratch& scratch);
// Tiles of queries for the tensor cores, bf16: on any device, and with warp groups for one sequence or for
// several, of which those with few new tokens have small tiles.
void attend_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes);
void attend_hopper(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes);
void attend_hopper_and_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call,
                             int decodes);

}  // namespace inferno::cuda
