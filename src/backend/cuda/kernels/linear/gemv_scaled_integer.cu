// Products of a few tokens with Q4_0, int4 and int8 blocks.
#include "backend/cuda/kernels/linear/gemv_scaled.cuh"

namespace inferno::cuda {

void gemv_q4_0(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileQ4_0>>(queue, call, mode, count);
}

void gemv_int4_32(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileInt4_32>>(queue, call, mode, count);
}

void gemv_int4_64(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileInt4_64>>(queue, call, mode, count);
}

void gemv_int4_128(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileInt4_128>>(queue, call, mode, count);
}

void gemv_int8_32(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileInt8_32>>(queue, call, mode, count);
}

void gemv_int8_64(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<GemvScaledCodec<TileInt8_64>>(queue, call, mode, count);
}

}  // namespace inferno::cuda
