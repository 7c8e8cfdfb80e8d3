// Products of a few dozen tokens, of one matrix or of many experts, straight from tiles; see docs/kernels.md.
// Bound by reading the weights, of experts of those that have tokens: each comes once through a ring in
// shared memory, is decoded once in registers and multiplied there with all tokens of its group.
//
// One block on each multiprocessor. A team of four warps takes a pair of tiles, the operand of sixteen rows:
// gate and up rows of the same elements, or sixteen neighbouring rows. Tokens, gathered in shared memory, are
// the operand of eight columns. The members of a team divide the chunks of columns and add up their sums
// in order, so that a token's result does not depend on the others.
//
// A Codec says what a lane reads of a chunk (Piece), in which order its `runs` of eight neighbouring columns
// come, and which instruction multiplies them.
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/grouped_call.cuh"

namespace inferno::cuda {

// The order of copies: for each slab, for each round of four pairs, for each part, one of each pair's. Each
// team has stages of its own, every fourth: it has then seen a stage's last phase itself when it waits for
// the next. Of one ring for all it could ask for a stage whose phase before, another team's, had not yet
// arrived, and a barrier's parity cannot tell that from the one it wants.
template <class Codec, GroupedMode mode>
struct GroupedWeightProducer {
  using Stage = GroupedStage<Codec::format>;
  const GroupedCall& call;
  const GroupedSmem& smem;
  const std::uint64_t policy = evict_first_policy();
  PipelineState next[grouped_teams] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};

  // By one lane.
  __device__ void fill(PipelineState& place, const std::byte* first, const std::byte* second,
                       std::uint32_t bytes) const {
    Mbarrier* full = smem.full + place.stage;
    std::byte* to = smem.ring + place.stage * Stage::bytes;
    mbarrier_wait(smem.empty + place.stage, place.parity);
    mbarrier_arrive_expect_tx(full, 2 * bytes);
    bulk_copy(to, first, bytes, full, policy);
    bulk_copy(to + Stage::tile_bytes, second, bytes, full, policy);
    advance(place, call.shape.stages);
  }

  __device__ void run(const GroupedPass& pass) {
    const GroupedShape& shape = call.shape;
    const std::int64_t expert = pass.expert * call.expert_bytes;
    for (int slab = 0; slab < shape.slabs; ++slab) {
      const int chunks = shape.chunks_of(slab);
      for (int round = pass.first; round < pass.end; round += grouped_teams) {
        const int busy = min(grouped_teams, pass.end - round);
        for (int begin = 0; begin < chunks; begin += Stage::chunks) {
          const int bytes = min(Stage::chunks, chunks - begin) * Stage::chunk.bytes;
          const std::int64_t offset =
              expert + std::int64_t{slab * shape.slab_chunks + begin} * Stage::chunk.bytes;
#pragma unroll
          for (int team = 0; team < grouped_teams; ++team) {
            if (team < busy) fill_from(next[team], round + team, offset, static_cast<std::uint32_t>(bytes));
          }
        }
      }
    }
  }

  __device__ void fill_from(PipelineState& place, int pair, std::int64_t offset, std::uint32_t bytes) const {
    if constexpr (mode == GroupedMode::gated) {
      offset += pair * call.tile_bytes;
      fill(place, call.parts[0].data + offset, call.parts[1].data + offset, bytes);
    } else {
      const GroupedPart& part = part_of(call, pair);
      const int tile = 2 * (pair - part.first_pair);
      const int other = min(tile + 1, (part.rows - 1) / tiles::tile_rows);
      fill(place, part.data + offset + tile * call.tile_bytes, part.data + offset + other * call.tile_bytes,
           bytes);
    }
  }
};

// The tokens of one group at a time, a slab of their columns each, once nobody reads the ones before.
template <class Codec>
struct GroupedTokenProducer {
  static constexpr int chunk_cols = tiles::chunk_of(Codec::format).cols;
  const GroupedCall& call;
  const GroupedSmem& smem;
  const int lane;
  const std::uint64_t policy = evict_normal_policy();
  PipelineState next = {0, 1};

  __device__ void run(const GroupedPass& pass) {
    const GroupedShape& shape = call.shape;
    const bool mine = lane < pass.rows;
    std::int64_t row = 0;
    if (mine) row = call.gather != nullptr ? __ldcg(call.gather + pass.place + lane) : pass.place + lane;
    for (int slab = 0; slab < shape.slabs; ++slab) {
      const int first = slab * shape.slab_chunks * chunk_cols;
      const int bytes = 2 * min(shape.slab_chunks * chunk_cols, call.cols - first);
      mbarrier_wait(smem.tokens_empty, next.parity);
      if (lane == 0)
        mbarrier_arrive_expect_tx(smem.tokens_full, static_cast<std::uint32_t>(pass.rows * bytes));
      __syncwarp();
      if (mine) {
        bulk_copy(smem.tokens + lane * shape.token_stride, call.in + (row * call.cols + first) * 2,
                  static_cast<std::uint32_t>(bytes), smem.tokens_full, policy);
      }
      next.advance(1);
    }
  }
};

// What codecs of bf16 have in common.
struct GroupedCodec {
  // Sums that take turns, so that a product need not wait for the one before. Where decoding is dear, two.
  static constexpr int chains = 1;
  __device__ static void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                  std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
    mma_bf16(c, a0, a1, a2, a3, b0, b1);
  }
};

template <class Codec, GroupedMode mode>
struct GroupedConsumer {
  using Stage = GroupedStage<Codec::format>;
  const GroupedCall& call;
  const GroupedSmem& smem;
  const int team, member, lane, g, t;
  PipelineState place = {team}, tokens = {};
  int turn = 0;  // pairs of this team so far

  __device__ int reducer_of(int pair_turn) const { return pair_turn % grouped_members; }

  using Fragment = typename Codec::Fragment;
  struct Fragments {
    Fragment first, second;
  };
  __device__ Fragments load(const std::byte* chunk) const {
    return {Codec::load(chunk, g, t), Codec::load(chunk + Stage::tile_bytes, g, t)};
  }

  template <int NTiles>
  using Chains = float[Codec::chains][NTiles][4];

  template <int NTiles>
  __device__ void add_chunk(Chains<NTiles>& sums, const Fragments& fragments, const std::byte* in) const {
#pragma unroll
    for (int run = 0; run < Codec::runs; ++run) {
      std::uint32_t a[4], b[4];
      Codec::decode(a, fragments.first, run);
      Codec::decode(b, fragments.second, run);
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
        const uint4 x = *reinterpret_cast<const uint4*>(in + 8 * n * call.shape.token_stride +
                                                        2 * Codec::element(t, run));
        Codec::multiply(sums[0][n], a[0], b[0], a[1], b[1], x.x, x.y);
        Codec::multiply(sums[Codec::chains - 1][n], a[2], b[2], a[3], b[3], x.z, x.w);
      }
    }
  }

  // This member's chunks of a slab of a pair. Which they are depends on the part alone.
  template <int NTiles>
  __device__ void add_parts(float (&total)[NTiles][4], int slab) {
    Chains<NTiles> sums = {};
    const int chunks = call.shape.chunks_of(slab);
    const std::byte* in = smem.tokens + g * call.shape.token_stride;
    for (int begin = 0, part = 0; begin < chunks; begin += Stage::chunks, ++part) {
      const int first = (member + part) % grouped_members, count = chunks - begin - first;
      const std::byte* stage = smem.ring + place.stage * Stage::bytes + first * Stage::chunk.bytes;
      const std::byte* from = in + 2 * Stage::chunk.cols * (begin + first);
      mbarrier_wait(smem.full + place.stage, place.parity);
      // Everything is asked for at once. Chunks that are missing in the last part are what was there before.
      Fragments fragments[Stage::each];
#pragma unroll
      for (int i = 0; i < Stage::each; ++i)
        fragments[i] = load(stage + i * grouped_members * Stage::chunk.bytes);
#pragma unroll
      for (int i = 0; i < Stage::each; ++i) {
        if (i * grouped_members >= count) break;
        add_chunk<NTiles>(sums, fragments[i], from + 2 * i * grouped_members * Stage::chunk.cols);
      }
      __syncwarp();
      mbarrier_arrive_warp(smem.empty + place.stage, lane);
      advance(place, call.shape.stages);
    }
#pragma unroll
    for (int chain = 0; chain < Codec::chains; ++chain) {
#pragma unroll
      for (int i = 0; i < 4 * NTiles; ++i) total[i / 4][i % 4] += sums[chain][i / 4][i % 4];
    }
  }

  // The members' sums in order. Only the one whose turn it is gets them; the others go on.
  template <int NTiles>
  __device__ bool join(float (&sums)[NTiles][4]) {
    const int reducer = reducer_of(turn);
    const auto phase = static_cast<std::uint32_t>(turn++) & 1u;
    // What was there before has been read: before the first pair, nothing was.
    mbarrier_wait(smem.sums_empty + team, phase ^ 1u);
    float4* all = smem.sums + team * (grouped_members - 1) * call.shape.n_tiles * 32;
    const auto slot = [&](int from, int n) {
      return all + ((from < reducer ? from : from - 1) * NTiles + n) * 32 + lane;
    };
    if (member != reducer) {
#pragma unroll
      for (int i = 0; i < NTiles; ++i) {
        *slot(member, i) = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      }
      __syncwarp();
      mbarrier_arrive_warp(smem.sums_full + team, lane);
      return false;
    }
    mbarrier_wait(smem.sums_full + team, phase);
#pragma unroll
    for (int i = 0; i < NTiles; ++i) {
      const float4 own = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int from = 0; from < grouped_members; ++from) {
        const float4 more = from == reducer ? own : *slot(from, i);
        total = make_float4(total.x + more.x, total.y + more.y, total.z + more.z, total.w + more.w);
      }
      sums[i][0] = total.x, sums[i][1] = total.y, sums[i][2] = total.z, sums[i][3] = total.w;
    }
    __syncwarp();
    mbarrier_arrive_warp(smem.sums_empty + team, lane);
    return true;
  }

  // Rows g and g + 8 of a pair, as columns of the result; -1: there is no such row. Gated: the same one.
  struct Rows {
    int first = -1, second = -1;
    float first_bias = 0.0f, second_bias = 0.0f;
  };
  __device__ Rows rows_of(const GroupedPass& pass, int pair) const {
    constexpr bool gated = mode == GroupedMode::gated;
    const GroupedPart& part = part_of(call, pair);
    const int row = (gated ? 8 : 16) * (pair - part.first_pair) + g, other = gated ? row : row + 8;
    Rows out;
    if (row < part.rows) out.first = part.column + row;
    if (other < part.rows) out.second = part.column + other;
    if (call.bias == nullptr) return out;
    const float* bias = call.bias + pass.expert * call.bias_stride;
    if (out.first >= 0) out.first_bias = __ldg(bias + out.first);
    if (out.second >= 0) out.second_bias = __ldg(bias + out.second + (gated ? part.rows : 0));
    return out;
  }

  __device__ void put(std::int64_t at, float value) const {
    if (call.out_is_f16) {
      reinterpret_cast<__half*>(call.out.data)[at] = __float2half_rn(value);
    } else {
      call.out.put(at, value);
    }
  }
  __device__ float factor_of(int at) const {
    if (call.factors == nullptr) return 1.0f;
    return __ldcg(call.factors + (call.gather != nullptr ? __ldcg(call.gather + at) : at));
  }

  template <int NTiles>
  __device__ void write(const float (&sums)[NTiles][4], const GroupedPass& pass, const Rows& rows,
                        int slab) const {
#pragma unroll
    for (int i = 0; i < NTiles; ++i) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        const int token = 8 * i + 2 * t + column;
        if (token >= pass.rows) continue;
        const std::int64_t at = std::int64_t{pass.place + token} * call.out_cols;
        const float factor = factor_of(pass.place + token);
        const float first = sums[i][column] * factor, second = sums[i][2 + column] * factor;
        if constexpr (mode == GroupedMode::gated) {
          if (rows.first < 0) continue;
          put(at + rows.first,
              activated(first + rows.first_bias, second + rows.second_bias, call.activation));
        } else {
          const auto add = [&](int row, float value, float bias) {
            if (row >= 0) put(at + row, value + (slab == 0 ? bias : call.out.get(at + row)));
          };
          add(rows.first, first, rows.first_bias);
          add(rows.second, second, rows.second_bias);
        }
      }
    }
  }

  template <int NTiles>
  __device__ void run_slab(const GroupedPass& pass, int slab) {
    mbarrier_wait(smem.tokens_full, tokens.parity);
    for (int pair = pass.first + team; pair < pass.end; pair += grouped_teams) {
      Rows rows = {};
      if (member == reducer_of(turn)) rows = rows_of(pass, pair);
      float sums[NTiles][4] = {};
      add_parts<NTiles>(sums, slab);
      if (join<NTiles>(sums)) write<NTiles>(sums, pass, rows, slab);
    }
    __syncwarp();
    mbarrier_arrive_warp(smem.tokens_empty, lane);
    tokens.advance(1);
  }

  __device__ void run(const GroupedPass& pass) {
    for (int slab = 0; slab < call.shape.slabs; ++slab) {
      if (pass.rows <= 8) {
        run_slab<1>(pass, slab);
      } else if (pass.rows <= 16) {
        run_slab<2>(pass, slab);
      } else {
        run_slab<3>(pass, slab);
      }
    }
  }
};

// How many say that a phase has ended. Copies do so themselves, behind one thread that expects them.
__device__ inline int arrivals_at(const GroupedSmem& smem, const Mbarrier* barrier) {
  if (barrier >= smem.sums_empty) return warp_arrivals;
  if (barrier >= smem.sums_full) return (grouped_members - 1) * warp_arrivals;
  if (barrier == smem.tokens_empty) return grouped_warps * warp_arrivals;
  const bool is_empty = barrier >= smem.empty && barrier < smem.tokens_full;
  return is_empty ? grouped_members * warp_arrivals : 1;
}

__device__ inline void init_smem(const GroupedCall& call, const GroupedSmem& smem, int chunk_cols,
                                 int thread) {
  const GroupedShape& shape = call.shape;
  // A lane of every warp, each a few: lanes of one warp would start theirs one after another.
  for (int i = thread / 32; thread % 32 == 0 && i < GroupedSmem::barriers; i += grouped_warps + 2) {
    mbarrier_init(smem.full + i, arrivals_at(smem, smem.full + i));
  }
  // Columns that no token has must be numbers: they are multiplied by zero.
  if (call.cols % chunk_cols != 0) {
    const int units = 8 * shape.n_tiles * shape.token_stride / 16;
    for (int i = thread; i < units; i += grouped_threads) {
      reinterpret_cast<uint4*>(smem.tokens)[i] = make_uint4(0, 0, 0, 0);
    }
  }
  fence_proxy_async();
}

// The groups of a gated product come from the kernel before. Those of a plain one are older, if it has any:
// whoever started it had waited for them, so its weights are on their way while the kernel before still
// writes the tokens.
template <class Codec, GroupedMode mode>
__global__ void __launch_bounds__(grouped_threads, 1)
    grouped_kernel(const __grid_constant__ GroupedCall call) {
  extern __shared__ __align__(128) std::byte start[];
  const GroupedSmem smem(start, call.shape);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  init_smem(call, smem, tiles::chunk_of(Codec::format).cols, thread);
  if (warp == grouped_warps) {
    if constexpr (mode == GroupedMode::gated) {
      wait_for_previous();
      let_next_start();
    }
    if (call.group_rows != nullptr) {
      GroupedWork::find(smem.share, call, lane);
    } else if (lane == 0) {
      GroupedWork::divide(smem.share, call);
    }
  }
  __syncthreads();
  const GroupedWork share = {smem.share[0], smem.share[1], smem.share[2], smem.share[3]};
  if (warp < grouped_warps) {
    const int team = warp / grouped_members;
    // So that the first members of all teams are not on the same quarter of the multiprocessor.
    const int member = (warp + team) % grouped_members;
    GroupedConsumer<Codec, mode> work = {call, smem, team, member, lane, lane / 4, lane % 4};
    share.for_each(call, [&](const GroupedPass& pass) { work.run(pass); });
  } else if (warp == grouped_warps) {
    if constexpr (mode == GroupedMode::plain) {
      wait_for_previous();
      let_next_start();
    }
    GroupedTokenProducer<Codec> gatherer = {call, smem, lane};
    share.for_each(call, [&](const GroupedPass& pass) { gatherer.run(pass); });
  } else if (lane == 0) {
    GroupedWeightProducer<Codec, mode> producer = {call, smem};
    share.for_each(call, [&](const GroupedPass& pass) { producer.run(pass); });
  }
}

template <class Codec>
void launch_grouped(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  const auto start = [&](void (*kernel)(GroupedCall)) {
    const int bytes =
        GroupedSmem::fixed_bytes(call.shape) + call.shape.stages * GroupedStage<Codec::format>::bytes;
    // What other shapes need as well: recorded steps have several.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, queue.shared_limit));
    launch(queue,
           {.grid = dim3(static_cast<unsigned>(queue.multiprocessors)),
            .threads = grouped_threads,
            .shared = static_cast<std::size_t>(bytes)},
           kernel, call);
  };
  if (mode == GroupedMode::gated) return start(grouped_kernel<Codec, GroupedMode::gated>);
  start(grouped_kernel<Codec, GroupedMode::plain>);
}

// One translation unit each.
void grouped_bf16(const Queue& queue, const GroupedCall& call, GroupedMode mode);
void grouped_f16(const Queue& queue, const GroupedCall& call, GroupedMode mode);
void grouped_q8_0(const Queue& queue, const GroupedCall& call, GroupedMode mode);
void grouped_q4_k(const Queue& queue, const GroupedCall& call, GroupedMode mode);
void grouped_mxfp4(const Queue& queue, const GroupedCall& call, GroupedMode mode);
void grouped_mxfp4_f16(const Queue& queue, const GroupedCall& call, GroupedMode mode);  // f16 inputs

}  // namespace inferno::cuda
