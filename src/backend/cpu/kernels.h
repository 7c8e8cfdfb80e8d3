// The kernels of an instruction set: one table of functions for each level. The portable level has no table;
// its operations are the plain loops in the files of this folder.
//
// Everything in simd/ is compiled for instructions that the machine may lack, so none of it may be shared
// with other code: a common inline function would be kept once by the linker, perhaps in its vector
// version. Hence plain structs and function pointers here, and internal linkage there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/host.h"
#include "spec/model_spec.h"
#include "tensor/format.h"
#include "tensor/matrix.h"

namespace inferno::cpu {

inline constexpr int activation_group = 32;  // activations under one scale

// The inputs of `width` tokens side by side, quantized to integers: pairs of columns as two int16, one scale
// for 32 columns, and sums (scale included) of 16 and of 32 columns for formats with minima.
struct IntegerTile {
  const std::int32_t* pairs = nullptr;  // [cols / 2, width]
  const float* scales = nullptr;        // [cols / 32, width]
  const float* sums16 = nullptr;        // [cols / 16, width]
  const float* sums32 = nullptr;        // [cols / 32, width]
  // The same numbers as 256 * high + low, four columns in the order 0 2 1 3, and -128 times the sum of 32
  // columns. Only for tiles of at most max_byte_tokens tokens.
  const std::int32_t *low = nullptr, *high = nullptr;  // [cols / 4, width]
  const std::int32_t* offsets = nullptr;               // [cols / 32, width]
  // The same bytes and no pairs: [cols / 32, 2 (high, low), 16 tokens, 32]. Only for tiles of tile_tokens.
  const std::int8_t* bytes = nullptr;
};
inline constexpr int max_byte_tokens = 2;
inline constexpr int tile_tokens = 16;    // of a TileUnit
inline constexpr int tile_columns = 512;  // of wide tiles, at a time; a multiple of every block size

inline constexpr int columns_together = 1024;  // columns summed in one run; a multiple of every block size

// out (16 columns) = start + panel * tile, for `blocks` blocks along the columns.
struct PanelCall {
  const std::byte* panel = nullptr;
  int blocks = 0;
  IntegerTile integers;           // for formats with integer kernels
  const float* floats = nullptr;  // [cols, width] for the others
  // For BF16 with a TileUnit: activations as two BF16 terms. Up to four tokens: floats [cols, 2, width];
  // otherwise BF16 [cols / 32, 2, width, 32].
  const void* terms = nullptr;
  float* out = nullptr;  // [tokens, stride]
  std::ptrdiff_t stride = 0;
  int rows = 0;                 // valid rows of the panel, up to 16
  int tokens = 0;               // valid tokens of the tile, up to its width
  const float* bias = nullptr;  // [rows]; null if there is none or `out` already has it
  bool continues = false;       // add to what is in `out`
  bool prefetches = false;      // with one or two tokens: see wants_prefetch()
};
using PanelKernel = void (*)(const PanelCall& call);

// Quantizes one row of activations into its part of an IntegerTile, with a stride of `width`.
struct QuantizeCall {
  const float* in = nullptr;
  int cols = 0;  // a multiple of 32
  int width = 0;
  std::int32_t* pairs = nullptr;
  float *scales = nullptr, *sums16 = nullptr, *sums32 = nullptr;
  std::int32_t *low = nullptr, *high = nullptr, *offsets = nullptr;
};

// Splits one row of activations into its part of PanelCall::terms; the width tells the layout.
struct SplitCall {
  const float* in = nullptr;
  int cols = 0;
  int width = 0;
  void* terms = nullptr;
};

// A unit that multiplies small matrices. It reads panels of integers that were unpacked once for all tiles,
// and those of BF16 as they are.
inline constexpr int unpacked_bytes_per_column = 24;  // at most
struct TileUnit {
  // Returns the number of units, which is PanelCall::blocks for Kernels::panel_kernel(format, tile_tokens).
  int (*unpack)(WeightFormat format, std::byte* to, const std::byte* panel, int blocks) = nullptr;
  // Around calls of these kernels, on the same thread.
  void (*begin)(WeightFormat format) = nullptr;
  void (*end)() = nullptr;
  // Fills one token of IntegerTile::bytes, from `low` and `high` on, and its scales and sums.
  void (*quantize)(const QuantizeCall& call) = nullptr;
  void (*split)(const SplitCall& call) = nullptr;
};

struct NormCall {
  float* out = nullptr;
  const float* in = nullptr;
  int width = 0;
  bool centered = false;  // layer norm: the mean is subtracted
  float epsilon = 0.0f;
  const float* gain = nullptr;
  const float* bias = nullptr;  // or null
};

// Queries of one sequence that share a key head, against positions [begin, end). Running maxima, totals
// and sums carry over from call to call, so that a context may be split.
struct AttendCall {
  int queries = 0;
  const float* const* query = nullptr;  // [queries] of head_dim
  const int* first = nullptr;           // [queries]: each sees positions first..last
  const int* last = nullptr;
  int begin = 0, end = 0;               // from a multiple of attend_chunk on
  int first_known = 0, last_known = 0;  // positions [first_known, last_known) have blocks
  int head_dim = 0;
  float scale = 0.0f;
  const float *keys = nullptr, *values = nullptr;  // of this head, at cache row 0
  std::ptrdiff_t row_stride = 0;
  const std::int32_t* block_table = nullptr;
  int block_size = 0;
  float* tops = nullptr;     // [queries]
  float* totals = nullptr;   // [queries]
  float* sums = nullptr;     // [queries, padded_dim]
  int padded_dim = 0;        // head_dim rounded up to 16
  float* scratch = nullptr;  // (padded_dim + 16) * attend_chunk floats
};

inline constexpr int attend_chunk = 64;  // positions handled at once

// A piece of a KV cache as floats.
struct WidenCall {
  float* out = nullptr;  // has room for `count`, rounded up to 16
  const std::byte* in = nullptr;
  int count = 0;  // whole blocks of the type
  DType type = DType::f32;
  float scale = 1.0f;  // of f8_e4m3
};

struct Kernels {
  IsaLevel level = IsaLevel::portable;
  const int* widths = nullptr;  // of tiles, ascending
  int width_count = 0;
  // null for a format that has no panel.
  PanelKernel (*panel_kernel)(WeightFormat format, int width) = nullptr;
  // Decodes one block of a panel to [columns, 16].
  void (*expand_block)(WeightFormat format, const std::byte* block, float* out) = nullptr;
  void (*quantize)(const QuantizeCall& call) = nullptr;
  void (*normalize)(const NormCall& call) = nullptr;
  // x += scale * y
  void (*add_scaled)(float* x, const float* y, float scale, int count) = nullptr;
  // up is null unless gated. False when this activation has no vector form.
  bool (*activate)(float* out, const float* gate, const float* up, int count,
                   const ActivationSpec& activation) = nullptr;
  void (*attend)(const AttendCall& call) = nullptr;
  void (*widen)(const WidenCall& call) = nullptr;
  const TileUnit* tiles = nullptr;  // for formats with integer kernels and BF16; null without
};

// Defined only in builds for 64-bit ARM.
extern const Kernels kernels_neon;
extern const Kernels kernels_neon_dot, kernels_neon_i8mm;  // null members: as kernels_neon

// Defined only in builds for x86-64.
extern const Kernels kernels_avx2, kernels_avx512;
extern const Kernels kernels_avx512_vnni;             // null members: as kernels_avx512
extern const Kernels kernels_amx, kernels_amx_model;  // null members: as kernels_avx512_vnni

// null for the portable level and for levels that this build lacks.
const Kernels* kernels_for(IsaLevel level);

}  // namespace inferno::cpu
