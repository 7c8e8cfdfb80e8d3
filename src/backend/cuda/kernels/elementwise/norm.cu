// add_norm: one block per row. Bound by latency (a row is a few kilobytes), for prompts by memory: every
// element is read once, kept in a register and written once, four at a time if rows are aligned. The delta
// may be the weighted sum of a mixture's rows.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/experts/experts.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct NormCall {
  Elements out, residual, delta;
  const float *gain, *bias;
  const float* shares;         // routing weights of a mixture whose rows are the delta
  const std::int32_t* places;  // null: rows are in order
  int active;                  // 0: the delta is a single row
  int width;
  float scale, epsilon;
  bool centred;
};

// Elements that are loaded and stored together.
template <int Count>
struct Vector {
  float values[Count];

  static __device__ Vector from(const Elements& in, std::int64_t at) {
    Vector out;
    if constexpr (Count == 4) {
      if (in.wide) {
        const float4 four = *reinterpret_cast<const float4*>(in.data + at * 4);
        out.values[0] = four.x, out.values[1] = four.y, out.values[2] = four.z, out.values[3] = four.w;
        return out;
      }
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) out.values[i] = in.get(at + i);
    return out;
  }
  __device__ void to(const Elements& out, std::int64_t at) const {
    if constexpr (Count == 4) {
      if (out.wide) {
        *reinterpret_cast<float4*>(out.data + at * 4) =
            make_float4(values[0], values[1], values[2], values[3]);
      } else {
        *reinterpret_cast<uint2*>(out.data + at * 2) =
            make_uint2(pack_bf16x2(values[0], values[1]), pack_bf16x2(values[2], values[3]));
      }
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) out.put(at + i, values[i]);
    }
  }
};

// The rows whose weighted sum is a token's delta.
struct Delta {
  std::int64_t rows[max_active_experts];
  float shares[max_active_experts];

  __device__ void find(const NormCall& call) {
    const int k = static_cast<int>(threadIdx.x);
    if (k < call.active) {
      const std::int64_t choice = std::int64_t{blockIdx.x} * call.active + k;
      rows[k] = (call.places == nullptr ? choice : call.places[choice]) * call.width;
      shares[k] = call.shares[choice];
    }
    if (call.active > 0) __syncthreads();
  }
  // `Count` elements of the delta from a column on.
  template <int Count>
  __device__ Vector<Count> at(const NormCall& call, int column) const {
    if (call.active == 0)
      return Vector<Count>::from(call.delta, std::int64_t{blockIdx.x} * call.width + column);
    Vector<Count> sum = {};
#pragma unroll 4
    for (int k = 0; k < call.active; ++k) {
      const Vector<Count> more = Vector<Count>::from(call.delta, rows[k] + column);
#pragma unroll
      for (int i = 0; i < Count; ++i) sum.values[i] += shares[k] * more.values[i];
    }
    return sum;
  }
};

// Count: 4 if all rows are aligned and a multiple of four long, otherwise 1.
template <int Kept, int Count>
__global__ void __launch_bounds__(1024) add_norm_kernel(const NormCall call) {
  __shared__ float smem[32];
  __shared__ Delta delta;
  wait_for_previous();
  let_next_start();
  delta.find(call);
  const std::int64_t row = std::int64_t{blockIdx.x} * call.width;
  const int step = Count * static_cast<int>(blockDim.x), first = Count * static_cast<int>(threadIdx.x);
  Vector<Count> kept[Kept];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    const int c = first + i * step;
    kept[i] = {};
    if (c >= call.width) continue;
    kept[i] = Vector<Count>::from(call.residual, row + c);
    if (call.delta.data != nullptr) {
      const Vector<Count> more = delta.at<Count>(call, c);
#pragma unroll
      for (int j = 0; j < Count; ++j) kept[i].values[j] += call.scale * more.values[j];
      kept[i].to(call.residual, row + c);
    }
#pragma unroll
    for (int j = 0; j < Count; ++j) sum += kept[i].values[j];
  }
  if (call.out.data == nullptr) return;
  const float mean = call.centred ? block_sum(sum, smem) / static_cast<float>(call.width) : 0.0f;
  float square = 0.0f;
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    if (first + i * step >= call.width) continue;
#pragma unroll
    for (int j = 0; j < Count; ++j) square += (kept[i].values[j] - mean) * (kept[i].values[j] - mean);
  }
  const float inverse = rsqrtf(block_sum(square, smem) / static_cast<float>(call.width) + call.epsilon);
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    const int c = first + i * step;
    if (c >= call.width) continue;
    Vector<Count> out;
#pragma unroll
    for (int j = 0; j < Count; ++j) {
      out.values[j] = (kept[i].values[j] - mean) * inverse * call.gain[c + j];
      if (call.bias != nullptr) out.values[j] += call.bias[c + j];
    }
    out.to(call.out, row + c);
  }
}

NormCall norm_call(Matrix out, Matrix residual, float scale, const Norm& norm) {
  return {.out = elements_of(out),
          .residual = elements_of(residual),
          .delta = {},
          .gain = floats_of(norm.gain),
          .bias = floats_of(norm.bias),
          .shares = nullptr,
          .places = nullptr,
          .active = 0,
          .width = residual.cols,
          .scale = scale,
          .epsilon = norm.epsilon,
          .centred = norm.kind == NormKind::layer};
}

bool in_fours(const NormCall& call) {
  const auto is_aligned = [](const Elements& rows) {
    return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
  };
  return call.width % 4 == 0 && is_aligned(call.out) && is_aligned(call.residual) && is_aligned(call.delta);
}

template <int Count>
Shape shape_for(const NormCall& call, int rows) {
  const int runs = (call.width + Count - 1) / Count;
  return {.grid = dim3(static_cast<unsigned>(rows)),
          .threads = static_cast<unsigned>(std::min(1024, (runs + 31) / 32 * 32))};
}

void launch_norm(const Queue& queue, const NormCall& call, int rows) {
  if (in_fours(call) && call.width <= 16 * 1024) {
    const Shape shape = shape_for<4>(call, rows);
    if (call.width <= 4 * 1024) return launch(queue, shape, add_norm_kernel<1, 4>, call);
    return launch(queue, shape, add_norm_kernel<4, 4>, call);
  }
  const Shape shape = shape_for<1>(call, rows);
  if (call.width <= 4 * 1024) return launch(queue, shape, add_norm_kernel<4, 1>, call);
  if (call.width <= 16 * 1024) return launch(queue, shape, add_norm_kernel<16, 1>, call);
  launch(queue, shape, add_norm_kernel<64, 1>, call);
}

}  // namespace

void add_norm(const Queue& queue, Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) {
  NormCall call = norm_call(out, residual, scale, norm);
  call.delta = elements_of(delta);
  launch_norm(queue, call, residual.rows);
}

void combine_add_norm(const Queue& queue, Matrix out, Matrix residual, const MixedRows& mixed, float scale,
                      const Norm& norm) {
  NormCall call = norm_call(out, residual, scale, norm);
  call.delta = elements_of(mixed.rows);
  call.shares = mixed.shares;
  call.places = mixed.places;
  call.active = mixed.active;
  launch_norm(queue, call, residual.rows);
}

}  // namespace inferno::cuda
