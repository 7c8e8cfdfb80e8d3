// Products of a few tokens with FP8, NVFP4, NF4 and FP4 blocks.
#include "backend/cuda/kernels/linear/gemv_scaled.cuh"

namespace inferno::cuda {

void gemv_fp8_32(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileFp8_32>>(queue, call, mode, count);
}

void gemv_fp8_128(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileFp8_128>>(queue, call, mode, count);
}

void gemv_nvfp4_64(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileNvfp4_64>>(queue, call, mode, count);
}

void gemv_nf4_64(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileNf4_64>>(queue, call, mode, count);
}

void gemv_fp4_64(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileFp4_64>>(queue, call, mode, count);
}

}  // namespace inferno::cuda
