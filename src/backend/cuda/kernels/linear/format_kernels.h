// The kernels of each weight format. dispatch/formats.h has the matching descriptors, and the assertion below
// compares both: a kernel that a descriptor promises and this table lacks does not compile.
#pragma once

#include <array>

#include "backend/cuda/dispatch/shapes.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

struct Packing;
struct GemvCall;
struct StreamCall;
struct GroupedCall;
enum class GemvMode;
enum class StreamMode;

using PackLauncher = void(const Queue&, const Packing&);
using GemvLauncher = void(const Queue&, const GemvCall&, GemvMode, int count);
using StreamLauncher = void(const Queue&, const StreamCall&, StreamMode, int blocks, int shared);
using GroupedLauncher = void(const Queue&, const GroupedCall&, GroupedMode);

PackLauncher pack_16_bit, pack_q8_0, pack_q4_k, pack_q6_k, pack_mxfp4;
PackLauncher pack_q4_0, pack_int4_32, pack_int4_64, pack_int4_128, pack_int8_32, pack_int8_64, pack_fp8_32,
    pack_fp8_128, pack_nvfp4_64, pack_nf4_64, pack_fp4_64;
GemvLauncher gemv_f16, gemv_bf16, gemv_q8_0, gemv_q4_k, gemv_q5_k, gemv_q6_k, gemv_mxfp4;
GemvLauncher gemv_q4_0, gemv_int4_32, gemv_int4_64, gemv_int4_128, gemv_int8_32, gemv_int8_64, gemv_fp8_32,
    gemv_fp8_128, gemv_nvfp4_64, gemv_nf4_64, gemv_fp4_64;
StreamLauncher stream_f16, stream_bf16, stream_q8_0, stream_q4_k, stream_mxfp4;
StreamLauncher stream_q4_0, stream_int4_128, stream_int8_64, stream_fp8_128, stream_nvfp4_64;
GroupedLauncher grouped_f16, grouped_bf16, grouped_q8_0, grouped_q4_k, grouped_mxfp4, grouped_mxfp4_f16;

GroupedLauncher grouped_q4_0, grouped_int4_32, grouped_int4_64, grouped_int4_128, grouped_int8_64,
    grouped_fp8_128, grouped_nvfp4_64;

struct FormatKernels {
  WeightFormat format;
  PackLauncher* pack;
  GemvLauncher* gemv;
  StreamLauncher* stream;
  GroupedLauncher *grouped, *grouped_f16;  // bf16 and f16 inputs
};

// In the order of WeightFormat: pack, gemv, stream, grouped, grouped with f16 inputs.
inline constexpr std::array format_kernels = {
    FormatKernels{WeightFormat::f64, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::f32, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::f16, pack_16_bit, gemv_f16, stream_f16, grouped_f16, nullptr},
    FormatKernels{WeightFormat::bf16, pack_16_bit, gemv_bf16, stream_bf16, grouped_bf16, nullptr},
    FormatKernels{WeightFormat::f8_e4m3, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::f8_e5m2, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::i64, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::i32, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::i16, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::i8, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::u8, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q8_0, pack_q8_0, gemv_q8_0, stream_q8_0, grouped_q8_0, nullptr},
    FormatKernels{WeightFormat::q4_0, pack_q4_0, gemv_q4_0, stream_q4_0, grouped_q4_0, nullptr},
    FormatKernels{WeightFormat::q4_1, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q5_0, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q5_1, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q2_k, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q3_k, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q4_k, pack_q4_k, gemv_q4_k, stream_q4_k, grouped_q4_k, nullptr},
    FormatKernels{WeightFormat::q5_k, nullptr, gemv_q5_k, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::q6_k, pack_q6_k, gemv_q6_k, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::iq3_s, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::iq4_nl, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::iq4_xs, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::tq2_0, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::mxfp4, pack_mxfp4, gemv_mxfp4, stream_mxfp4, grouped_mxfp4,
                  grouped_mxfp4_f16},
    FormatKernels{WeightFormat::int4_32, pack_int4_32, gemv_int4_32, nullptr, grouped_int4_32, nullptr},
    FormatKernels{WeightFormat::int4_64, pack_int4_64, gemv_int4_64, nullptr, grouped_int4_64, nullptr},
    FormatKernels{WeightFormat::int4_128, pack_int4_128, gemv_int4_128, stream_int4_128, grouped_int4_128,
                  nullptr},
    FormatKernels{WeightFormat::int8_16, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::int8_32, pack_int8_32, gemv_int8_32, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::int8_64, pack_int8_64, gemv_int8_64, stream_int8_64, grouped_int8_64,
                  nullptr},
    FormatKernels{WeightFormat::fp8_32, pack_fp8_32, gemv_fp8_32, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::fp8_128, pack_fp8_128, gemv_fp8_128, stream_fp8_128, grouped_fp8_128,
                  nullptr},
    FormatKernels{WeightFormat::nvfp4_32, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::nvfp4_64, pack_nvfp4_64, gemv_nvfp4_64, stream_nvfp4_64, grouped_nvfp4_64,
                  nullptr},
    FormatKernels{WeightFormat::nf4_32, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::nf4_64, pack_nf4_64, gemv_nf4_64, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::fp4_32, nullptr, nullptr, nullptr, nullptr, nullptr},
    FormatKernels{WeightFormat::fp4_64, pack_fp4_64, gemv_fp4_64, nullptr, nullptr, nullptr},
};

constexpr bool has_promised_kernels(const FormatTraits& promised, const FormatKernels& kernels) {
  return (promised.layout != Layout::stored) == (kernels.pack != nullptr) &&
         promised.has_gemv == (kernels.gemv != nullptr) &&
         promised.has_stream() == (kernels.stream != nullptr) &&
         promised.has_grouped() == (kernels.grouped != nullptr) &&
         promised.has_grouped_f16 == (kernels.grouped_f16 != nullptr);
}
constexpr bool has_all_promised_kernels() {
  for (std::size_t i = 0; i < format_kernels.size(); ++i) {
    if (!has_promised_kernels(format_traits[i], format_kernels[i])) return false;
  }
  return true;
}
static_assert(covers_all_formats(format_kernels) && has_all_promised_kernels());

constexpr const FormatKernels& kernels_of(WeightFormat format) {
  return format_kernels[static_cast<std::size_t>(format)];
}

}  // namespace inferno::cuda
