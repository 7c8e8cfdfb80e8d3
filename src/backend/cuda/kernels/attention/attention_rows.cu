// Attention of isolated rows: one token per sequence, or shapes that attention_tiles.cu does not take. A
// block takes one row, the query heads of one KV head and a range of positions. Bound by latency for short
// contexts, by KV cache bandwidth for long ones.
//
// Four warps take 32 positions each in turn. First a lane is a position: it reads its key and multiplies it
// with every head's query, so no shuffles are needed. Then a lane is a few dimensions and accumulates the 32
// weighted values. The ranges' results meet in scratch memory; the last block to finish adds them in order.
#include "backend/cuda/device/cache_rows.cuh"
#include "backend/cuda/device/cached.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int warps = 4, batch = 32, min_range = warps * batch;

struct RowsCall {
  CacheMap map;
  Elements out, qkv;
  Cached keys, values;
  const float* sinks;
  int heads, kv_heads, head_dim, qkv_cols, groups, splits;
  int first_row;  // rows before it are left out
  float scale;
  float* partial;
  std::uint32_t* tickets;
};

// Rows of keys or values of one KV head.
template <DType Type>
struct HeadRows {
  Cached cache;
  int kv_head;
  float scale;
  __device__ CachedHead<Type> operator[](std::int64_t row) const { return {cache.head(row, kv_head), scale}; }
};
// use(HeadRows<...>): of the two types that the device prefers, known at compile time, or of any.
enum class CacheKind { f32, bf16, any };
template <CacheKind Kind, class Use>
__device__ void with_rows(const Cached& cache, int kv_head, Use&& use) {
  const float scale = cache.scale(kv_head);
  if constexpr (Kind == CacheKind::any) {
    with_cached_type(cache.type,
                     [&]<DType Type>(CachedHead<Type>) { use(HeadRows<Type>{cache, kv_head, scale}); });
  } else {
    use(HeadRows < Kind == CacheKind::f32 ? DType::f32 : DType::bf16 > {cache, kv_head, scale});
  }
}

// Shared memory of a block, in floats: queries, attention weights of a batch per warp, results per warp.
template <int Heads>
struct Smem {
  float *queries, *weights, *results;
  int padded;  // head_dim rounded up to a multiple of eight
  __device__ Smem(float* start, int head_dim) : queries(start), padded((head_dim + 7) / 8 * 8) {
    weights = queries + Heads * padded;
    results = weights + warps * batch * Heads;
  }
  static std::size_t bytes(int head_dim) {
    const int round = (head_dim + 7) / 8 * 8;
    return sizeof(float) *
           static_cast<std::size_t>(Heads * round + warps * batch * Heads + warps * Heads * (head_dim + 2));
  }
};

template <int Heads, int Dims>
struct State {
  float top[Heads], sum[Heads], values[Heads][Dims];
};

template <class Key, int Heads>
__device__ void score(float (&scores)[Heads], const Key& key, const Smem<Heads>& smem, int head_dim) {
  if (head_dim % 8 == 0) {
    constexpr int at_once = 8;  // runs of eight, all loaded before the first is used
    for (int first = 0; first < head_dim; first += 8 * at_once) {
      float k[at_once][8];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        if (first + 8 * j < head_dim) key.run(k[j], first + 8 * j);
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const int d = first + 8 * j;
        if (d >= head_dim) break;
#pragma unroll
        for (int h = 0; h < Heads; ++h) {
          const auto* q = reinterpret_cast<const float4*>(smem.queries + h * smem.padded + d);
          const float4 a = q[0], b = q[1];
          scores[h] += a.x * k[j][0] + a.y * k[j][1] + a.z * k[j][2] + a.w * k[j][3];
          scores[h] += b.x * k[j][4] + b.y * k[j][5] + b.z * k[j][6] + b.w * k[j][7];
        }
      }
    }
    return;
  }
  for (int d = 0; d < head_dim; ++d) {
    const float k = key.get(d);
#pragma unroll
    for (int h = 0; h < Heads; ++h) scores[h] += smem.queries[h * smem.padded + d] * k;
  }
}

template <int Dims, class Value>
__device__ void load_value(float (&out)[Dims], const Value& value, int first, int head_dim) {
  if (head_dim % Dims == 0 && (Dims == 1 || head_dim % 2 == 0)) {
    if (first < head_dim) return value.run(out, first);
#pragma unroll
    for (int i = 0; i < Dims; ++i) out[i] = 0.0f;
    return;
  }
#pragma unroll
  for (int i = 0; i < Dims; ++i) out[i] = first + i < head_dim ? value.get(first + i) : 0.0f;
}

// Adds the weighted values of a batch, whose cache rows the lanes hold.
template <int Heads, int Dims, class Rows>
__device__ void add_values(State<Heads, Dims>& state, const RowsCall& call, const Rows& rows,
                           const float* weights, int row, int lane, int count) {
  constexpr int at_once = Dims <= 4 ? 16 : 8;
  for (int p = 0; p < count; p += at_once) {
    float values[at_once][Dims];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const std::int64_t source = __shfl_sync(full_warp, row, min(p + j, count - 1));
      load_value<Dims>(values[j], rows[source], lane * Dims, call.head_dim);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      if (p + j >= count) break;
      float shares[Heads];
      if constexpr (Heads % 4 == 0) {
#pragma unroll
        for (int h = 0; h < Heads; h += 4) {
          const float4 four = *reinterpret_cast<const float4*>(weights + (p + j) * Heads + h);
          shares[h] = four.x, shares[h + 1] = four.y, shares[h + 2] = four.z, shares[h + 3] = four.w;
        }
      } else {
#pragma unroll
        for (int h = 0; h < Heads; ++h) shares[h] = weights[(p + j) * Heads + h];
      }
#pragma unroll
      for (int h = 0; h < Heads; ++h) {
#pragma unroll
        for (int i = 0; i < Dims; ++i) state.values[h][i] += shares[h] * values[j][i];
      }
    }
  }
}

// One batch of up to 32 positions, all of which exist.
template <CacheKind Kind, int Heads, int Dims>
__device__ void add_batch(State<Heads, Dims>& state, const RowsCall& call, const Smem<Heads>& smem,
                          int sequence, int kv_head, int first, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(call.map.row(sequence, first + min(lane, count - 1)));
  float scores[Heads] = {};
  with_rows<Kind>(call.keys, kv_head,
                  [&](const auto& keys) { score(scores, keys[row], smem, call.head_dim); });
  float* weights = smem.weights + warp * batch * Heads;
#pragma unroll
  for (int h = 0; h < Heads; ++h) {
    const float s = lane < count ? scores[h] * call.scale : -INFINITY;
    const float top = fmaxf(state.top[h], warp_max(s));
    const float rescale = expf(state.top[h] - top), weight = expf(s - top);
    state.top[h] = top;
    state.sum[h] = state.sum[h] * rescale + warp_sum(weight);
#pragma unroll
    for (int i = 0; i < Dims; ++i) state.values[h][i] *= rescale;
    weights[lane * Heads + h] = weight;
  }
  __syncwarp();
  with_rows<Kind>(call.values, kv_head,
                  [&](const auto& rows) { add_values(state, call, rows, weights, row, lane, count); });
  __syncwarp();
}

// Merges `count` results of [heads][head_dim + 2] (values, top, sum), `stride` floats apart, for one element.
struct Merged {
  float value, top, sum;
};
__device__ Merged merge(const float* results, int count, std::int64_t stride, int head_dim, int h, int d) {
  const float* own = results + std::int64_t{h} * (head_dim + 2);
  Merged out = {0.0f, -INFINITY, 0.0f};
  for (int i = 0; i < count; ++i) out.top = fmaxf(out.top, own[i * stride + head_dim]);
  for (int i = 0; i < count; ++i) {
    const float* one = own + i * stride;
    const float share = one[head_dim] == -INFINITY ? 0.0f : expf(one[head_dim] - out.top);
    out.value += share * one[d];
    out.sum += share * one[head_dim + 1];
  }
  return out;
}

struct RowsWork {
  int row, sequence, kv_head, first_head, heads, split, splits, begin, end;
};

template <int Heads>
__device__ RowsWork work_of(const RowsCall& call) {
  RowsWork at;
  const int group = static_cast<int>(blockIdx.x) % call.groups;
  at.row = call.first_row + static_cast<int>(blockIdx.x) / call.groups;
  at.split = static_cast<int>(blockIdx.y);
  at.sequence = call.map.sequence_of(at.row);
  const int shared = call.heads / call.kv_heads, chunks = (shared + Heads - 1) / Heads;
  at.kv_head = group / chunks;
  at.first_head = at.kv_head * shared + group % chunks * Heads;
  at.heads = min(Heads, (at.kv_head + 1) * shared - at.first_head);
  const int own = call.map.positions[at.row], first = call.map.first_visible(own), count = own + 1 - first;
  at.splits = min(call.splits, (count + min_range - 1) / min_range);
  const int each = ((count + at.splits - 1) / at.splits + batch - 1) / batch * batch;
  at.begin = first + at.split * each;
  at.end = min(own + 1, at.begin + each);
  return at;
}

__device__ void write_out(const RowsCall& call, const RowsWork& at, const float* results, int count,
                          std::int64_t stride) {
  for (int i = static_cast<int>(threadIdx.x); i < at.heads * call.head_dim;
       i += static_cast<int>(blockDim.x)) {
    const int h = i / call.head_dim, d = i % call.head_dim;
    const Merged found = merge(results, count, stride, call.head_dim, h, d);
    float factor = 1.0f / found.sum;
    if (call.sinks != nullptr) {
      const float sink = call.sinks[at.first_head + h], top = fmaxf(found.top, sink);
      factor = expf(found.top - top) / (found.sum * expf(found.top - top) + expf(sink - top));
    }
    call.out.put(std::int64_t{at.row} * call.heads * call.head_dim + (at.first_head + h) * call.head_dim + d,
                 found.value * factor);
  }
}

// Stores this block's result in scratch memory. True for the last block to finish, which sees all results.
__device__ bool is_last(const RowsCall& call, const RowsWork& at, const float* results, float* mine,
                        std::int64_t warp_floats) {
  __shared__ bool last;
  for (int i = static_cast<int>(threadIdx.x); i < at.heads * call.head_dim;
       i += static_cast<int>(blockDim.x)) {
    const int h = i / call.head_dim, d = i % call.head_dim;
    const Merged found = merge(results, warps, warp_floats, call.head_dim, h, d);
    float* to = mine + std::int64_t{h} * (call.head_dim + 2);
    to[d] = found.value;
    if (d == 0) {
      to[call.head_dim] = found.top;
      to[call.head_dim + 1] = found.sum;
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto others = static_cast<std::uint32_t>(at.splits - 1);
    last = atomicInc(&call.tickets[blockIdx.x], others) == others;  // wraps to zero for the next launch
  }
  __syncthreads();
  __threadfence();
  return last;
}

template <CacheKind Kind, int Heads, int Dims>
__global__ void __launch_bounds__(32 * warps) attend_rows_kernel(const __grid_constant__ RowsCall call) {
  extern __shared__ __align__(16) float start[];
  wait_for_previous();
  let_next_start();
  const RowsWork at = work_of<Heads>(call);
  if (at.split >= at.splits) return;
  const Smem<Heads> smem(start, call.head_dim);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = static_cast<int>(threadIdx.x); i < Heads * smem.padded; i += static_cast<int>(blockDim.x)) {
    const int h = i / smem.padded, d = i % smem.padded;
    const std::int64_t source =
        std::int64_t{at.row} * call.qkv_cols + (at.first_head + h) * call.head_dim + d;
    smem.queries[i] = h < at.heads && d < call.head_dim ? call.qkv.get(source) : 0.0f;
  }
  __syncthreads();
  State<Heads, Dims> state;
#pragma unroll
  for (int h = 0; h < Heads; ++h) {
    state.top[h] = -INFINITY;
    state.sum[h] = 0.0f;
    for (int i = 0; i < Dims; ++i) state.values[h][i] = 0.0f;
  }
  for (int first = at.begin + warp * batch; first < at.end; first += warps * batch) {
    add_batch<Kind>(state, call, smem, at.sequence, at.kv_head, first, min(batch, at.end - first));
  }
  const std::int64_t warp_floats = std::int64_t{Heads} * (call.head_dim + 2);
  float* results = smem.results + warp * warp_floats;
#pragma unroll
  for (int h = 0; h < Heads; ++h) {
    float* to = results + h * (call.head_dim + 2);
#pragma unroll
    for (int i = 0; i < Dims; ++i) {
      if (lane * Dims + i < call.head_dim) to[lane * Dims + i] = state.values[h][i];
    }
    if (lane == 0) {
      to[call.head_dim] = state.top[h];
      to[call.head_dim + 1] = state.sum[h];
    }
  }
  __syncthreads();
  if (at.splits == 1) return write_out(call, at, smem.results, warps, warp_floats);
  float* all = call.partial + std::int64_t{blockIdx.x} * call.splits * warp_floats;
  if (is_last(call, at, smem.results, all + at.split * warp_floats, warp_floats)) {
    write_out(call, at, all, at.splits, warp_floats);
  }
}

template <CacheKind Kind, int Heads, int Dims>
void start(const Queue& queue, const RowsCall& call, unsigned rows) {
  const std::size_t shared = Smem<Heads>::bytes(call.head_dim);
  launch(queue,
         {.grid = dim3(rows * static_cast<unsigned>(call.groups), static_cast<unsigned>(call.splits)),
          .threads = 32 * warps,
          .shared = shared},
         attend_rows_kernel<Kind, Heads, Dims>, call);
}

template <CacheKind Kind, int Heads>
void start_dims(const Queue& queue, const RowsCall& call, unsigned rows) {
  if (call.head_dim <= 64) return start<Kind, Heads, 2>(queue, call, rows);
  if (call.head_dim <= 128) return start<Kind, Heads, 4>(queue, call, rows);
  start<Kind, Heads, 8>(queue, call, rows);
}

CacheKind kind_of(const RowsCall& call) {
  if (call.keys.type != call.values.type) return CacheKind::any;
  return call.keys.type == DType::f32    ? CacheKind::f32
         : call.keys.type == DType::bf16 ? CacheKind::bf16
                                         : CacheKind::any;
}

// Enough blocks for two per SM, as long as the longest context can feed them.
int splits_for(const Queue& queue, const RowsCall& call, std::int64_t rows, int heads,
               const AttendScratch& scratch) {
  const std::int64_t capacity = std::int64_t{call.map.table_cols} * call.map.block_size;
  const std::int64_t longest =
      call.map.window > 0 ? std::min<std::int64_t>(capacity, call.map.window) : capacity;
  const std::int64_t blocks = rows * call.groups;
  const std::int64_t wanted = (2 * queue.multiprocessors + blocks - 1) / blocks;
  const std::int64_t useful = (longest + min_range - 1) / min_range;
  const std::int64_t fits = scratch.partial_floats / (blocks * heads * (call.head_dim + 2));
  if (blocks > scratch.ticket_count) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(std::min({wanted, useful, fits}), 1, attend_max_splits));
}

}  // namespace

void attend_rows(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes,
                 const AttendScratch& scratch) {
  const AttentionSpec& spec = call.spec;
  RowsCall what = {.map = cache_map(call, decodes),
                   .out = elements_of(out),
                   .qkv = elements_of(qkv),
                   .keys = cached(call.cache.keys, call.weights.key_scales, spec.head_dim),
                   .values = cached(call.cache.values, call.weights.value_scales, spec.head_dim),
                   .sinks = spec.sinks ? floats_of(call.weights.sinks) : nullptr,
                   .heads = spec.heads,
                   .kv_heads = spec.kv_heads,
                   .head_dim = spec.head_dim,
                   .qkv_cols = qkv.cols,
                   .groups = 0,
                   .splits = 1,
                   .first_row = decodes,
                   .scale = spec.scale,
                   .partial = scratch.partial,
                   .tickets = scratch.tickets};
  const int shared = spec.heads / spec.kv_heads;
  const CacheKind kind = kind_of(what);
  const int heads = shared == 1 ? 1 : shared <= 4 || kind != CacheKind::bf16 ? 4 : 8;
  what.groups = spec.kv_heads * ((shared + heads - 1) / heads);
  what.splits = splits_for(queue, what, out.rows - decodes, heads, scratch);
  const auto rows = static_cast<unsigned>(out.rows - decodes);
  if (kind == CacheKind::f32) {
    return heads == 1 ? start_dims<CacheKind::f32, 1>(queue, what, rows)
                      : start_dims<CacheKind::f32, 4>(queue, what, rows);
  }
  if (kind == CacheKind::any) {
    return heads == 1 ? start_dims<CacheKind::any, 1>(queue, what, rows)
                      : start_dims<CacheKind::any, 4>(queue, what, rows);
  }
  if (heads == 1) return start_dims<CacheKind::bf16, 1>(queue, what, rows);
  if (heads == 4) return start_dims<CacheKind::bf16, 4>(queue, what, rows);
  start_dims<CacheKind::bf16, 8>(queue, what, rows);
}

}  // namespace inferno::cuda
