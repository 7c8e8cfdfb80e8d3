// Grouped GEMM of a few dozen tokens, for one matrix or for many experts, directly from tiles; see
// docs/kernels.md. Bound by weight bandwidth: the weights of each expert that has tokens pass once through a
// ring in shared memory, are decoded once in registers and multiplied there with all tokens of the group.
//
// One persistent, warp-specialized block per SM. A team of four consumer warps takes a pair of tiles, the mma
// operand of sixteen rows: gate and up rows of the same elements, or sixteen neighboring rows. Tokens,
// gathered in shared memory, are the operand of eight columns. The members of a team split the chunks
// (split-K) and their sums are added in order, so that a token's result does not depend on the other tokens.
//
// A Codec defines what a lane reads of a chunk (Fragment), the order of its `runs` of eight neighboring
// columns, and the mma instruction. A codec with `block_runs` decodes codes; the sums of so many runs are
// multiplied by a scale.
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/grouped_call.cuh"

namespace inferno::cuda {

// The producer of weights. Order of copies: for each slab, for each round of four pairs, for each part, one
// stage per team. Each team has its own stages (every fourth), so that it has itself seen the previous phase
// of a stage it waits for. In a ring shared by all teams it could wait for a stage whose previous phase,
// another team's, has not completed; the parity cannot tell them apart.
template <class Codec, GroupedMode mode>
struct GroupedWeightProducer {
  using Stage = GroupedStage<Codec::format>;
  const GroupedCall& call;
  const GroupedSmem& smem;
  const std::uint64_t policy = evict_first_policy();
  PipelineState next[grouped_teams] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};

  // Called by one lane.
  __device__ void fill(PipelineState& state, const std::byte* first, const std::byte* second,
                       std::uint32_t bytes) const {
    Mbarrier* full = smem.full + state.stage;
    std::byte* to = smem.ring + state.stage * Stage::bytes;
    mbarrier_wait(smem.empty + state.stage, state.parity);
    mbarrier_arrive_expect_tx(full, 2 * bytes);
    bulk_copy(to, first, bytes, full, policy);
    bulk_copy(to + Stage::tile_bytes, second, bytes, full, policy);
    advance(state, call.shape.stages);
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

  __device__ void fill_from(PipelineState& state, int pair, std::int64_t offset, std::uint32_t bytes) const {
    if constexpr (mode == GroupedMode::gated) {
      offset += pair * call.tile_bytes;
      fill(state, call.parts[0].data + offset, call.parts[1].data + offset, bytes);
    } else {
      const GroupedPart& part = part_of(call, pair);
      const int tile = 2 * (pair - part.first_pair);
      const int other = min(tile + 1, (part.rows - 1) / tiles::tile_rows);
      fill(state, part.data + offset + tile * call.tile_bytes, part.data + offset + other * call.tile_bytes,
           bytes);
    }
  }
};

// The producer of tokens: one group at a time, in slabs of columns, once all consumers have released the
// previous ones.
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

// Defaults for codecs that decode to bf16.
struct GroupedCodec {
  // Independent accumulator chains, so that an mma need not wait for the previous one. Codecs that are bound
  // by decoding have two.
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
  PipelineState state = {team}, tokens = {};
  int turn = 0;  // pairs that this team has finished

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
    if constexpr (requires { Codec::block_runs; }) {
#pragma unroll
      for (int block = 0; block < Codec::blocks; ++block) {
        Chains<NTiles> fresh = {};
        add_runs<NTiles, Codec::block_runs>(fresh, fragments, block * Codec::block_runs, in);
        const float first = fragments.first.scales[block], second = fragments.second.scales[block];
#pragma unroll
        for (int n = 0; n < NTiles; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[0][n][i] += (i < 2 ? first : second) * fresh[0][n][i];
        }
      }
    } else {
      add_runs<NTiles, Codec::runs>(sums, fragments, 0, in);
    }
  }

  template <int NTiles, int Count>
  __device__ void add_runs(Chains<NTiles>& sums, const Fragments& fragments, int first_run,
                           const std::byte* in) const {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int run = first_run + i;
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

  // This member's chunks of a slab of a pair. The assignment depends on the part alone.
  template <int NTiles>
  __device__ void add_parts(float (&total)[NTiles][4], int slab) {
    Chains<NTiles> sums = {};
    const int chunks = call.shape.chunks_of(slab);
    const std::byte* in = smem.tokens + g * call.shape.token_stride;
    for (int begin = 0, part = 0; begin < chunks; begin += Stage::chunks, ++part) {
      const int first = (member + part) % grouped_members, count = chunks - begin - first;
      const std::byte* stage = smem.ring + state.stage * Stage::bytes + first * Stage::chunk.bytes;
      const std::byte* from = in + 2 * Stage::chunk.cols * (begin + first);
      mbarrier_wait(smem.full + state.stage, state.parity);
      // All loads are issued at once. Fragments past the last chunk are stale and not used.
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
      mbarrier_arrive_warp(smem.empty + state.stage, lane);
      advance(state, call.shape.stages);
    }
#pragma unroll
    for (int chain = 0; chain < Codec::chains; ++chain) {
#pragma unroll
      for (int i = 0; i < 4 * NTiles; ++i) total[i / 4][i % 4] += sums[chain][i / 4][i % 4];
    }
  }

  // Adds the members' sums in order. Only the reducer of this turn gets the result; the other members
  // continue.
  template <int NTiles>
  __device__ bool join(float (&sums)[NTiles][4]) {
    const int reducer = reducer_of(turn);
    const auto phase = static_cast<std::uint32_t>(turn++) & 1u;
    // The previous sums have been read; before the first pair the wait passes at once.
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

  // Rows g and g + 8 of a pair as output columns; -1 if there is no such row. Gated: both give the same
  // column.
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

// Arrival count of a barrier. Copies complete a full barrier together with one expecting thread.
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
  // One lane of every warp initializes a few barriers: lanes of the same warp would be serialized.
  for (int i = thread / 32; thread % 32 == 0 && i < grouped_barriers; i += grouped_warps + 2) {
    mbarrier_init(smem.full + i, arrivals_at(smem, smem.full + i));
  }
  // Columns past the end must be finite: they are multiplied by zero.
  if (call.cols % chunk_cols != 0) {
    const int units = 8 * shape.n_tiles * shape.token_stride / 16;
    for (int i = thread; i < units; i += grouped_threads) {
      reinterpret_cast<uint4*>(smem.tokens)[i] = make_uint4(0, 0, 0, 0);
    }
  }
  fence_proxy_async();
}

// A gated product gets its table of groups from its predecessor. The table of a plain product is older: the
// gated product before it had waited for it. So a plain product must directly follow a gated one (or have no
// table), and its weights are in flight while its predecessor still writes the tokens.
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
      GroupedWork::find(smem.work, call, lane);
    } else if (lane == 0) {
      GroupedWork::divide(smem.work, call);
    }
  }
  __syncthreads();
  const GroupedWork work = {smem.work[0], smem.work[1], smem.work[2], smem.work[3]};
  if (warp < grouped_warps) {
    const int team = warp / grouped_members;
    // Spreads the first members of all teams over the SM's four schedulers.
    const int member = (warp + team) % grouped_members;
    GroupedConsumer<Codec, mode> consumer = {call, smem, team, member, lane, lane / 4, lane % 4};
    work.for_each(call, [&](const GroupedPass& pass) { consumer.run(pass); });
  } else if (warp == grouped_warps) {
    if constexpr (mode == GroupedMode::plain) {
      wait_for_previous();
      let_next_start();
    }
    GroupedTokenProducer<Codec> tokens = {call, smem, lane};
    work.for_each(call, [&](const GroupedPass& pass) { tokens.run(pass); });
  } else if (lane == 0) {
    GroupedWeightProducer<Codec, mode> weights = {call, smem};
    work.for_each(call, [&](const GroupedPass& pass) { weights.run(pass); });
  }
}

template <class Codec>
void launch_grouped(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  const auto start = [&](void (*kernel)(GroupedCall)) {
    const int bytes =
        grouped_fixed_bytes(call.shape) + call.shape.stages * GroupedStage<Codec::format>::bytes;
    // The largest size that any shape needs, because recorded graphs contain several shapes.
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

}  // namespace inferno::cuda
