// Keys and values on their way into the KV cache and out of it.
#include <algorithm>
#include <span>

#include "backend/cpu/operations.h"
#include "tensor/float16.h"
#include "tensor/format.h"
#include "tensor/quantize.h"

namespace inferno::cpu {
namespace {

WeightFormat format_of(DType type) {
  switch (type) {
    case DType::f32: return WeightFormat::f32;
    case DType::f16: return WeightFormat::f16;
    case DType::bf16: return WeightFormat::bf16;
    case DType::q8_0: return WeightFormat::q8_0;
    case DType::f8_e4m3: return WeightFormat::f8_e4m3;
    case DType::i32: break;
  }
  return WeightFormat::i32;
}

// A block with a value that its scale cannot express becomes NaN, so that the logits show the fault.
void store_q8_0(std::byte* to, std::span<const float> from) {
  constexpr int elements = blocks::Q8_0::elements;
  for (std::size_t first = 0; first < from.size(); first += elements, to += sizeof(blocks::Q8_0)) {
    const std::span<const float> values = from.subspan(first, elements);
    if (!first_unfit(WeightFormat::q8_0, values)) {
      quantize(WeightFormat::q8_0, values, {to, sizeof(blocks::Q8_0)});
      continue;
    }
    const blocks::Q8_0 block = {.scale = 0x7E00, .quants = {}};
    std::ranges::copy(std::as_bytes(std::span(&block, 1)), to);
  }
}

}  // namespace

void CacheHead::store(std::int64_t row, const float* from) const {
  std::byte* to = at(row);
  const std::span values(from, static_cast<std::size_t>(dim));
  switch (matrix.dtype) {
    case DType::f32: std::ranges::copy(values, reinterpret_cast<float*>(to)); return;
    case DType::f16:
    case DType::bf16:
      quantize(format_of(matrix.dtype), values, {to, bytes_for(matrix.dtype, values.size())});
      return;
    case DType::q8_0: store_q8_0(to, values); return;
    case DType::f8_e4m3:
      for (const float value : values) *to++ = std::byte{float_to_f8_e4m3(value / scale)};
      return;
    case DType::i32: break;
  }
  expects(false, "a cache has a type for keys and values");
}

const float* CacheHead::read(const Compute& compute, std::int64_t row, float* room) const {
  if (matrix.dtype == DType::f32) return reinterpret_cast<const float*>(at(row));
  if (compute.kernels != nullptr) {
    compute.kernels->widen({.out = room, .in = at(row), .count = dim, .type = matrix.dtype, .scale = scale});
    return room;
  }
  const std::span values(room, static_cast<std::size_t>(dim));
  decode(format_of(matrix.dtype), {at(row), bytes_for(matrix.dtype, values.size())}, values);
  if (matrix.dtype == DType::f8_e4m3) {
    for (float& value : values) value *= scale;
  }
  return room;
}

}  // namespace inferno::cpu
