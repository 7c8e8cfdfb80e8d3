// Grouped GEMM of up to some dozen tokens per expert on Hopper, directly from MXFP4 tiles: 256 weight rows by
// a tile of 8 to 96 tokens. Bound by the instructions that decode: each of sixteen consumer warps decodes a
// pair of weight tiles to f16 in registers, operand a of mma.sync or wgmma, while more than 100 KB of weights
// are under way. Tokens, operand b, are f16 with a factor for each row, in the order of
// arrange_choices_f16(), and pass through the ring with the weights.
#include <cuda_fp16.h>

#include <utility>

#include "backend/cuda/device/f16.cuh"
#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/device/wgmma_f16.cuh"
#include "backend/cuda/kernels/experts/coded.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

using namespace coded;
using Codec = Mxfp4FragmentsF16;

constexpr int groups = 4, group_threads = 128, threads = (groups + 1) * group_threads;
constexpr int max_pairs = 4 * groups;  // a pair of weight tiles for each consumer warp
constexpr int stage_chunks = 3;
// The first tiles of all pairs, then the second ones.
constexpr int tile_bytes = stage_chunks * chunk_bytes, half_bytes = max_pairs * tile_bytes;
constexpr int weight_bytes = 2 * half_bytes;
constexpr int producers = 2;  // a thread each
// Tiles of more tokens are multiplied with wgmma, smaller ones with mma.sync, which has less to wait for.
constexpr int mma_tokens = 16;

// Shared memory: tokens and weights of all stages, then their barriers. Addresses are those of the shared
// window, because the conversion of pointers would cost a tenth of the instructions of the inner loop.
template <int Tokens>
struct Smem {
  static constexpr int chunk_token_bytes = Tokens * tile_k * 2;
  static constexpr int token_bytes = stage_chunks * chunk_token_bytes;
  static constexpr int stages = coded_shared_bytes / (token_bytes + weight_bytes + 16);
  static constexpr int bytes = stages * (token_bytes + weight_bytes + 16);
  static_assert(chunk_token_bytes % 1024 == 0 && half_bytes % 128 == 0 && stages >= 3);

  std::byte* start;
  __device__ std::byte* tokens(int stage) const { return start + stage * token_bytes; }
  __device__ std::byte* weights(int stage) const {
    return start + stages * token_bytes + stage * weight_bytes;
  }
  __device__ Mbarrier* full(int stage) const { return reinterpret_cast<Mbarrier*>(weights(stages)) + stage; }
  __device__ Mbarrier* empty(int stage) const { return full(stages + stage); }
};

__device__ int stages_of(const Arguments& call) {
  return (call.cols / tile_k + stage_chunks - 1) / stage_chunks;
}

// One thread of each of two warps, for weights and for tokens. Weights do not depend on other kernels, so
// that their copies start before the predecessor has ended. Chunks past the last column arrive as zeros.
template <int Tokens>
__device__ void produce(const Arguments& call, const Smem<Tokens>& smem, const TileScheduler& scheduler,
                        int producer) {
  const bool is_tokens = producer == 1;
  if (is_tokens) {
    wait_for_previous();
    let_next_start();
  }
  const auto bytes = static_cast<std::uint32_t>(is_tokens ? smem.token_bytes : 2 * call.pairs * tile_bytes);
  PipelineState next = {0, 1};  // in the first round every stage is empty
  for (int i = static_cast<int>(blockIdx.x); i < scheduler.total; i += static_cast<int>(gridDim.x)) {
    const Tile tile = scheduler.tile(call, i);
    const int pair = tile.expert * call.tiles_between + tile.first_pair;
    for (int step = 0; step < stages_of(call); ++step) {
      const int chunk = step * stage_chunks;
      Mbarrier* full = smem.full(next.stage);
      mbarrier_wait(smem.empty(next.stage), next.parity);
      mbarrier_arrive_expect_tx(full, bytes);
      if (is_tokens) {
#pragma unroll
        for (int c = 0; c < stage_chunks; ++c) {
          tensor_copy(smem.tokens(next.stage) + c * smem.chunk_token_bytes, call.token_map,
                      (chunk + c) * tile_k, tile.first, full);
        }
      } else {
        tensor_copy(smem.weights(next.stage), call.weight_map, 0, chunk, pair, full);
        tensor_copy(smem.weights(next.stage) + half_bytes, call.up_map, 0, chunk, pair, full);
      }
      next.advance(smem.stages);
    }
  }
}

// What a lane reads of a chunk: row g of both tiles of the pair.
struct PairFragment {
  Codec::Fragment first, second;
};

template <int Offset>
__device__ Codec::Fragment load_fragment(std::uint32_t codes, std::uint32_t exponents) {
  uint2 words;
  std::uint32_t exponent;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2 + %3];"
               : "=r"(words.x), "=r"(words.y)
               : "r"(codes), "n"(Offset)
               : "memory");
  asm volatile("ld.shared.u8 %0, [%1 + %2];" : "=r"(exponent) : "r"(exponents), "n"(Offset) : "memory");
  return {words, Codec::scale(exponent)};
}

__device__ void wait_at(std::uint32_t barrier, std::uint32_t parity) {
  if constexpr (has_sm90) {
    asm volatile(
        "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra again;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
  } else {
    wrong_architecture();
  }
}

__device__ void arrive_at(std::uint32_t barrier, bool arrives) {
  if constexpr (has_sm90) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(
            barrier),
        "r"(static_cast<std::uint32_t>(arrives))
        : "memory");
  } else {
    wrong_architecture();
  }
}

// Keeps the compiler from computing the value again wherever it is used.
__device__ std::uint32_t kept(std::uint32_t value) {
  std::uint32_t out;
  asm volatile("mov.u32 %0, %1;" : "=r"(out) : "r"(value));
  return out;
}

// Half a chunk of eight tokens as operand b of two steps of sixteen columns.
struct Eight {
  std::uint32_t b[4];
};
__device__ Eight load_eight(std::uint32_t row) {
  Eight out;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out.b[0]), "=r"(out.b[1]), "=r"(out.b[2]), "=r"(out.b[3])
               : "r"(row)
               : "memory");
  return out;
}
template <int Count>
__device__ void multiply_eight(float (&sums)[Count], int n, const std::uint32_t (&a)[4], const Eight& x,
                               int k) {
  float c[4] = {sums[4 * n], sums[4 * n + 1], sums[4 * n + 2], sums[4 * n + 3]};
  mma_f16(c, a[0], a[1], a[2], a[3], x.b[2 * k], x.b[2 * k + 1]);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[4 * n + i] = c[i];
}

// A consumer warp: sixteen weight rows (a pair of tiles) by the tokens of the tile.
template <int Tokens>
class Consumer {
 public:
  using Sums = float[Tokens / 2];

  // A pair that the tile does not have is multiplied too, whatever is in its memory; its sums are never read.
  __device__ Consumer(const Smem<Tokens>& smem, int warp) : lane_(static_cast<int>(threadIdx.x) % 32) {
    const auto own = static_cast<std::uint32_t>(warp * tile_bytes);
    const int g = lane_ / 4, t = lane_ % 4;
    const std::uint32_t weights = shared_address(smem.weights(0)) + own;
    codes_ = kept(weights + static_cast<std::uint32_t>(tiles::run_mxfp4(g, 2 * t)));
    exponents_ = kept(weights + static_cast<std::uint32_t>(tiles::exponent_mxfp4(g, t / 2)));
    if constexpr (uses_mma) {
      // The row of eight elements that the lane names in ldmatrix, in the 128-byte swizzle.
      const int row = lane_ % 8, unit = lane_ / 8;
      tokens_ =
          kept(shared_address(smem.tokens(0)) + static_cast<std::uint32_t>(128 * row + 16 * (unit ^ row)));
    } else {
      // The low half of the descriptor.
      tokens_ = kept(static_cast<std::uint32_t>(wgmma_descriptor(smem.tokens(0), Swizzle::bytes_128, 1024)));
    }
    full_ = kept(shared_address(smem.full(0)));
  }

  // The halves of a chunk have a register set each: one is decoded while wgmma reads the other.
  __device__ void multiply(Sums& sums, int steps) {
    Operands sets[2];
    if constexpr (!uses_mma) wgmma_fence_operand(sums);
    for (int step = 0; step < steps; ++step) {
      const auto stage = static_cast<std::uint32_t>(place_.stage);
      const std::uint32_t codes = codes_ + stage * weight_bytes,
                          exponents = exponents_ + stage * weight_bytes;
      const std::uint32_t full = full_ + 8 * stage;
      wait_at(full, place_.parity);
      PairFragment fragments[stage_chunks];
      load_all(fragments, codes, exponents, std::make_integer_sequence<int, stage_chunks>{});
#pragma unroll
      for (int half = 0; half < 2 * stage_chunks; ++half) {
        const auto token_bytes =
            stage * Memory::token_bytes + static_cast<std::uint32_t>(half / 2 * Memory::chunk_token_bytes);
        Operands& operands = sets[half % 2];
        decode(operands, fragments[half / 2], half % 2);
        if constexpr (uses_mma) {
          multiply_now(sums, operands, (half % 2 == 0 ? tokens_ : tokens_ ^ 64u) + token_bytes);
        } else {
          start(sums, operands, tokens_ + (token_bytes >> 4) + half % 2 * 4u);
          wgmma_wait_group<1>();
          fence_operands(sets[(half + 1) % 2]);
          if (half == 0) release(before_, step > 0);
        }
      }
      if constexpr (uses_mma) release(full, true);
      before_ = full;
      place_.advance(Memory::stages);
    }
    if constexpr (uses_mma) return;
    wgmma_wait_group<0>();
    wgmma_fence_operand(sums);
    release(before_, true);
  }

 private:
  using Memory = Smem<Tokens>;
  static constexpr bool uses_mma = Tokens <= mma_tokens;
  using Operands = std::uint32_t[2][4];  // sixteen columns each

  template <int... Chunks>
  __device__ static void load_all(PairFragment (&out)[stage_chunks], std::uint32_t codes,
                                  std::uint32_t exponents, std::integer_sequence<int, Chunks...>) {
    ((out[Chunks].first = load_fragment<Chunks * chunk_bytes>(codes, exponents),
      out[Chunks].second = load_fragment<Chunks * chunk_bytes + half_bytes>(codes, exponents)),
     ...);
  }
  __device__ static void decode(Operands& out, const PairFragment& fragment, int run) {
    std::uint32_t a[4], b[4];
    Codec::decode(a, fragment.first, run);
    Codec::decode(b, fragment.second, run);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      out[half][0] = a[2 * half], out[half][1] = b[2 * half];
      out[half][2] = a[2 * half + 1], out[half][3] = b[2 * half + 1];
    }
  }
  // Half a chunk by all tokens with mma.sync, eight tokens at a time.
  __device__ static void multiply_now(Sums& sums, const Operands& operands, std::uint32_t tokens) {
#pragma unroll
    for (int n = 0; n < Tokens / 8; ++n) {
      const Eight x = load_eight(tokens + 1024u * static_cast<std::uint32_t>(n));
#pragma unroll
      for (int k = 0; k < 2; ++k) multiply_eight(sums, n, operands[k], x, k);
    }
  }
  // `tokens`: the low half of the descriptor; the high half is the same for all.
  __device__ static void start(Sums& sums, Operands& operands, std::uint32_t tokens) {
    constexpr std::uint64_t high =
        std::uint64_t{1024 >> 4} << 32 | static_cast<std::uint64_t>(Swizzle::bytes_128) << 62;
    fence_operands(operands);  // decoded before the first product, or the compiler serializes the products
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      wgmma_f16(sums, operands[k], high | (tokens + static_cast<std::uint32_t>(2 * k)));
    }
    wgmma_commit_group();
  }
  __device__ static void fence_operands(Operands& operands) {
    wgmma_fence_operand(operands[0]);
    wgmma_fence_operand(operands[1]);
  }
  // `full`: the stage's full barrier. A branch would make the compiler serialize the products.
  __device__ void release(std::uint32_t full, bool has_stage) const {
    const bool arrives = has_stage && (warp_arrivals > 1 || lane_ == 0);
    __syncwarp();
    arrive_at(full + 8 * Memory::stages, arrives);
  }

  const int lane_;
  std::uint32_t codes_, exponents_, tokens_, full_, before_ = 0;
  PipelineState place_ = {};
};

// Gate and up rows of element g are sums of one lane. Lanes of neighboring elements, whose columns are
// neighbors in the permuted order too, exchange results, so that each stores pairs.
template <int Count>
__device__ void write_activated(const Arguments& call, const Tile& tile, int pair,
                                const float (&sums)[Count]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4, odd = g % 2;
  const int row = 8 * pair + g, column = row - odd;
  if (8 * pair >= call.rows) return;
  const float gate_bias = call.bias_at(tile.expert, row),
              up_bias = call.bias_at(tile.expert, call.rows + row);
  std::byte* out =
      call.out +
      (std::int64_t{tile.first} * call.out_cols + column / tile_k * tile_k + place_of(column % tile_k)) * 2;
#pragma unroll
  for (int j = 0; j < Count / 4; ++j) {
    const int first = 8 * j + 2 * t;
    if (8 * j >= tile.tokens) return;
    float values[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float factor = first + i < tile.tokens ? __ldcg(call.factors + tile.first + first + i) : 0.0f;
      values[i] = call.gate(sums[4 * j + i] * factor + gate_bias, sums[4 * j + 2 + i] * factor + up_bias);
    }
    const float other = __shfl_xor_sync(full_warp, odd != 0 ? values[0] : values[1], 4);
    const __half2 elements =
        odd != 0 ? __floats2half2_rn(other, values[1]) : __floats2half2_rn(values[0], other);
    const int token = first + odd;
    if (token < tile.tokens) {
      *reinterpret_cast<__half2*>(out + std::int64_t{token} * call.out_cols * 2) = elements;
    }
  }
}

template <int Count>
__device__ void write(const Arguments& call, const Tile& tile, int pair, const float (&sums)[Count]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = 16 * pair + lane / 4, second = first + 8;
  const bool has_first = first < call.rows, has_second = second < call.rows;
  const float first_bias = has_first ? call.bias_at(tile.expert, first) : 0.0f,
              second_bias = has_second ? call.bias_at(tile.expert, second) : 0.0f;
  auto* out = reinterpret_cast<float*>(call.out) + std::int64_t{tile.first} * call.out_cols + first;
#pragma unroll
  for (int j = 0; j < Count / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = 8 * j + 2 * (lane % 4) + i;
      if (token >= tile.tokens) continue;
      float* at = out + std::int64_t{token} * call.out_cols;
      if (has_first) at[0] = sums[4 * j + i] + first_bias;
      if (has_second) at[8] = sums[4 * j + 2 + i] + second_bias;
    }
  }
}

template <bool Gated, int Tokens>
__global__ void __launch_bounds__(threads, 1) few_kernel(const __grid_constant__ Arguments call) {
  extern __shared__ __align__(1024) std::byte start[];
  const Smem<Tokens> smem = {start};
  if (threadIdx.x == 0) {
    for (int s = 0; s < smem.stages; ++s) {
      mbarrier_init(smem.full(s), producers);
      mbarrier_init(smem.empty(s), max_pairs * warp_arrivals);
    }
    fence_proxy_async();
  }
  __syncthreads();
  // The table was written before the previous kernel waited.
  const TileScheduler scheduler(call, (call.rows + (Gated ? 7 : 15)) / (Gated ? 8 : 16));
  const int warp = static_cast<int>(threadIdx.x) / 32 - group_threads / 32;
  if (warp < 0) {
    setmaxnreg_dec<32>();
    const int producer = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x % 32 != 0 || producer >= producers) return;
    produce(call, smem, scheduler, producer);
    return;
  }
  setmaxnreg_inc<112>();
  Consumer<Tokens> consumer(smem, warp);
  for (int i = static_cast<int>(blockIdx.x); i < scheduler.total; i += static_cast<int>(gridDim.x)) {
    const Tile tile = scheduler.tile(call, i);
    float sums[Tokens / 2] = {};
    consumer.multiply(sums, stages_of(call));
    wait_for_previous();
    if (warp >= call.pairs) continue;
    const int pair = tile.first_pair + warp;
    if constexpr (Gated) {
      write_activated(call, tile, pair, sums);
    } else {
      write(call, tile, pair, sums);
    }
  }
}

template <bool Gated, int Tokens>
void start(const Queue& queue, const WeightView& weight, const std::byte* up, int rows,
           const CodedFewProduct& product, const Gate& gate) {
  const int all_pairs = (rows + (Gated ? 7 : 15)) / (Gated ? 8 : 16);
  // Row tiles of about the same size.
  const int row_tiles = (all_pairs + max_pairs - 1) / max_pairs;
  const int pairs = (all_pairs + row_tiles - 1) / row_tiles;
  Arguments arguments = arguments_of(product, weight, rows, pairs, gate);
  // Pairs of the plain product are two neighboring tiles, so each map has every other tile.
  constexpr int every = Gated ? 1 : 2;
  arguments.tiles_between /= every;
  const WeightBox box = {.tiles = pairs, .chunks = stage_chunks, .every = every};
  arguments.weight_map = map_weights(weight, weight.data, rows, box);
  arguments.up_map = map_weights(weight, Gated ? up : weight.data + weight.tile_bytes, rows, box);
  arguments.token_map = map_rows(product.in, Tokens);
  arguments.factors = product.factors;
  const auto kernel = few_kernel<Gated, Tokens>;
  constexpr int bytes = Smem<Tokens>::bytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  launch(queue,
         {.grid = dim3(static_cast<unsigned>(queue.multiprocessors)), .threads = threads, .shared = bytes},
         kernel, arguments);
}

template <bool Gated>
void start(const Queue& queue, const WeightView& weight, const std::byte* up, int rows,
           const CodedFewProduct& product, const Gate& gate) {
  switch (product.rows) {
    case 8: return start<Gated, 8>(queue, weight, up, rows, product, gate);
    case 16: return start<Gated, 16>(queue, weight, up, rows, product, gate);
    case 24: return start<Gated, 24>(queue, weight, up, rows, product, gate);
    case 32: return start<Gated, 32>(queue, weight, up, rows, product, gate);
    case 48: return start<Gated, 48>(queue, weight, up, rows, product, gate);
    case 64: return start<Gated, 64>(queue, weight, up, rows, product, gate);
    default: return start<Gated, 96>(queue, weight, up, rows, product, gate);
  }
}

}  // namespace

void coded_few_gated(const Queue& queue, std::span<const WeightView> gate_up, const CodedFewProduct& product,
                     const ActivationSpec& activation) {
  const WeightView& gate = gate_up.front();
  const int hidden = product.out.cols;
  start<true>(queue, gate, gate_up.size() == 2 ? gate_up[1].data : gate.from_row(hidden), hidden, product,
              gate_of(activation));
}

void coded_few_plain(const Queue& queue, const WeightView& weight, const CodedFewProduct& product) {
  start<false>(queue, weight, weight.data, weight.rows, product, {});
}

}  // namespace inferno::cuda
