// Keys and values of a KV cache as floats.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/elementwise.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

// Types of single elements: how 16 of them are read.
template <class M>
struct F32Reader {
  static constexpr int bytes = 4;
  static auto read(const std::byte* from, float) { return M::load(reinterpret_cast<const float*>(from)); }
};
template <class M>
struct F16Reader {
  static constexpr int bytes = 2;
  static auto read(const std::byte* from, float) {
    return M::from_halves(reinterpret_cast<const std::uint16_t*>(from));
  }
};
template <class M>
struct Bf16Reader {
  static constexpr int bytes = 2;
  static auto read(const std::byte* from, float) {
    return M::as_floats(M::left_by(M::halves(reinterpret_cast<const std::uint16_t*>(from)), 16));
  }
};
template <class M>
struct E4m3Reader {
  static constexpr int bytes = 1;
  static auto read(const std::byte* from, float scale) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(from);
    // from_e4m3() gives 2^-8 of the value.
    const auto values = M::times(M::times(M::from_e4m3(codes), M::floats(256.0f)), M::floats(scale));
    // It takes the code of NaN for a number. That code plus 1 is the only one with bit 7, which becomes all
    // bits.
    const auto beyond = M::add(M::masked(M::bytes(codes), 0x7F), M::ints(1));
    return M::as_floats(M::either(M::as_ints(values), M::template right_signed<31>(M::left_by(beyond, 24))));
  }
};

template <class M, class Reader>
void widen_elements(const WidenCall& call) {
  int i = 0;
  for (; i + lanes <= call.count; i += lanes) {
    M::store(call.out + i, Reader::read(call.in + i * Reader::bytes, call.scale));
  }
  if (i == call.count) return;
  std::byte rest[lanes * sizeof(float)] = {};  // what follows the last elements may not be readable
  for (int b = 0; b < (call.count - i) * Reader::bytes; ++b) rest[b] = call.in[i * Reader::bytes + b];
  M::store(call.out + i, Reader::read(rest, call.scale));
}

template <class M>
void widen_q8_0(const WidenCall& call) {
  constexpr int elements = 32, bytes = 34;
  const int blocks = call.count / elements;
  for (int first = 0; first < blocks; first += lanes) {
    const int some = blocks - first < lanes ? blocks - first : lanes;
    std::uint16_t halves[lanes] = {};
    alignas(64) float scales[lanes];
    for (int b = 0; b < some; ++b) __builtin_memcpy(&halves[b], call.in + (first + b) * bytes, 2);
    M::store(scales, M::from_halves(halves));
    for (int b = 0; b < some; ++b) {
      const auto* codes = reinterpret_cast<const std::int8_t*>(call.in + (first + b) * bytes + 2);
      float* out = call.out + (first + b) * elements;
      const auto scale = M::floats(scales[b]);
      for (int i = 0; i < elements; i += lanes) {
        M::store(out + i, M::times(scale, M::to_floats(M::signed_bytes(codes + i))));
      }
    }
  }
}

template <class M>
void widen(const WidenCall& call) {
  switch (call.type) {
    case DType::f32: return widen_elements<M, F32Reader<M>>(call);
    case DType::f16: return widen_elements<M, F16Reader<M>>(call);
    case DType::bf16: return widen_elements<M, Bf16Reader<M>>(call);
    case DType::f8_e4m3: return widen_elements<M, E4m3Reader<M>>(call);
    case DType::q8_0: return widen_q8_0<M>(call);
    case DType::i32: return;  // no type of a cache
  }
}

}  // namespace
}  // namespace inferno::cpu
