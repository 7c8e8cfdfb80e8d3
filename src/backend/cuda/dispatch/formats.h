// One descriptor for each weight format: its layout in device memory and which kernel families have a kernel
// for it. kernels/linear/format_kernels.h has the matching table of kernels; the compiler compares both.
// Formats whose descriptor names no kernel run on linear_generic, which takes every format as it is stored.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/format.h"

namespace inferno::cuda {

// How a weight's rows are stored in device memory: Weight::layout.
enum class Layout : std::uint8_t {
  stored,  // the file's blocks, one after another
  split,   // codes, then scales of each row: Q6_K
  tiled,   // eight rows together, see device/tiles.cuh
};

namespace tiles {
// The columns of a tile are cut into chunks, each with all codes and scales of its columns.
struct Chunk {
  int cols = 0, bytes = 0;
};
}  // namespace tiles

struct FormatTraits {
  WeightFormat format = WeightFormat::f32;
  Layout layout = Layout::stored;  // what the fast kernels read
  tiles::Chunk chunk = {};         // of Layout::tiled
  bool has_gemv = false;
  // Chunks of a ring stage that one warp of the stream kernel multiplies; 0: there is no such kernel.
  int stream_chunks = 0;
  // Bytes between two tokens in the shared memory of the grouped kernel, so that rows that are read together
  // are in different banks; 0: there is no such kernel.
  int grouped_padding = 0;
  bool has_grouped_f16 = false;  // the grouped kernel also takes f16 inputs
  bool has_coded_gemm = false;   // gemm_coded decodes it in registers
  // A few tokens are better multiplied by the grouped kernel, which decodes once for all, than by gemv.
  bool is_slow_to_decode = false;
  // As the format of a router: route_many takes it, and a stream kernel can sum its logits.
  bool has_route_many = false, has_stream_router = false;

  constexpr bool has_stream() const { return stream_chunks > 0; }
  constexpr bool has_grouped() const { return grouped_padding > 0; }
};

inline constexpr std::array format_traits = {
    FormatTraits{.format = WeightFormat::f64},
    FormatTraits{.format = WeightFormat::f32, .has_route_many = true, .has_stream_router = true},
    FormatTraits{.format = WeightFormat::f16,
                 .layout = Layout::tiled,
                 .chunk = {64, 1024},
                 .has_gemv = true,
                 .stream_chunks = 1,
                 .grouped_padding = 64,
                 .has_route_many = true},
    FormatTraits{.format = WeightFormat::bf16,
                 .layout = Layout::tiled,
                 .chunk = {64, 1024},
                 .has_gemv = true,
                 .stream_chunks = 1,
                 .grouped_padding = 64,
                 .has_route_many = true,
                 .has_stream_router = true},
    FormatTraits{.format = WeightFormat::f8_e4m3},
    FormatTraits{.format = WeightFormat::f8_e5m2},
    FormatTraits{.format = WeightFormat::i64},
    FormatTraits{.format = WeightFormat::i32},
    FormatTraits{.format = WeightFormat::i16},
    FormatTraits{.format = WeightFormat::i8},
    FormatTraits{.format = WeightFormat::u8},
    FormatTraits{.format = WeightFormat::q8_0,
                 .layout = Layout::tiled,
                 .chunk = {64, 544},
                 .has_gemv = true,
                 .stream_chunks = 2,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::q4_0,
                 .layout = Layout::tiled,
                 .chunk = {128, 576},
                 .has_gemv = true,
                 .stream_chunks = 2,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::q4_1},
    FormatTraits{.format = WeightFormat::q5_0},
    FormatTraits{.format = WeightFormat::q5_1},
    FormatTraits{.format = WeightFormat::q2_k},
    FormatTraits{.format = WeightFormat::q3_k},
    FormatTraits{.format = WeightFormat::q4_k,
                 .layout = Layout::tiled,
                 .chunk = {256, 1152},
                 .has_gemv = true,
                 .stream_chunks = 1,
                 .grouped_padding = 64,
                 .is_slow_to_decode = true},
    FormatTraits{.format = WeightFormat::q5_k, .has_gemv = true},
    FormatTraits{.format = WeightFormat::q6_k, .layout = Layout::split, .has_gemv = true},
    FormatTraits{.format = WeightFormat::iq3_s},
    FormatTraits{.format = WeightFormat::iq4_nl},
    FormatTraits{.format = WeightFormat::iq4_xs},
    FormatTraits{.format = WeightFormat::tq2_0},
    // The tensor cores have a column for each block of four chunks. A lane reads 32 bytes at a time.
    FormatTraits{.format = WeightFormat::mxfp4,
                 .layout = Layout::tiled,
                 .chunk = {64, 272},
                 .has_gemv = true,
                 .stream_chunks = 4,
                 .grouped_padding = 16,
                 .has_grouped_f16 = true,
                 .has_coded_gemm = true,
                 .is_slow_to_decode = true},
    // Of rows that are no multiple of 64 columns, as in no published model, some blocks have no fast kernels.
    FormatTraits{.format = WeightFormat::int4_32,
                 .layout = Layout::tiled,
                 .chunk = {128, 672},
                 .has_gemv = true,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::int4_64,
                 .layout = Layout::tiled,
                 .chunk = {128, 592},
                 .has_gemv = true,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::int4_128,
                 .layout = Layout::tiled,
                 .chunk = {128, 560},
                 .has_gemv = true,
                 .stream_chunks = 2,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::int8_16},
    FormatTraits{
        .format = WeightFormat::int8_32, .layout = Layout::tiled, .chunk = {128, 1184}, .has_gemv = true},
    FormatTraits{.format = WeightFormat::int8_64,
                 .layout = Layout::tiled,
                 .chunk = {128, 1104},
                 .has_gemv = true,
                 .stream_chunks = 1,
                 .grouped_padding = 64},
    FormatTraits{
        .format = WeightFormat::fp8_32, .layout = Layout::tiled, .chunk = {128, 1152}, .has_gemv = true},
    FormatTraits{.format = WeightFormat::fp8_128,
                 .layout = Layout::tiled,
                 .chunk = {128, 1056},
                 .has_gemv = true,
                 .stream_chunks = 1,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::nvfp4_32},
    FormatTraits{.format = WeightFormat::nvfp4_64,
                 .layout = Layout::tiled,
                 .chunk = {128, 640},
                 .has_gemv = true,
                 .stream_chunks = 2,
                 .grouped_padding = 64},
    FormatTraits{.format = WeightFormat::nf4_32},
    FormatTraits{
        .format = WeightFormat::nf4_64, .layout = Layout::tiled, .chunk = {128, 576}, .has_gemv = true},
    FormatTraits{.format = WeightFormat::fp4_32},
    FormatTraits{
        .format = WeightFormat::fp4_64, .layout = Layout::tiled, .chunk = {128, 576}, .has_gemv = true},
};

// Whether a table has one entry for each format, in the order of WeightFormat.
template <class Table>
constexpr bool covers_all_formats(const Table& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].format != static_cast<WeightFormat>(i)) return false;
  }
  return table.size() == all_formats.size();
}
static_assert(covers_all_formats(format_traits));

constexpr const FormatTraits& traits_of(WeightFormat format) {
  return format_traits[static_cast<std::size_t>(format)];
}

namespace tiles {

constexpr int tile_rows = 8;

constexpr Chunk chunk_of(WeightFormat format) {
  return traits_of(format).chunk;
}
constexpr std::int64_t tile_bytes(Chunk chunk, int cols) {
  return std::int64_t{(cols + chunk.cols - 1) / chunk.cols} * chunk.bytes;
}
constexpr std::int64_t tile_bytes(WeightFormat format, int cols) {
  return tile_bytes(chunk_of(format), cols);
}
constexpr std::int64_t padded_rows(std::int64_t rows) {
  return (rows + tile_rows - 1) / tile_rows * tile_rows;
}

}  // namespace tiles
}  // namespace inferno::cuda
