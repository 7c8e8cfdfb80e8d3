// Activations as the panel kernels read them: the rows of a batch in groups of a few tokens, side by side, as
// whole numbers, as floats or, for a TileUnit, as BF16 terms.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/operations.h"

namespace inferno::cpu {

struct Tile {
  int batch = 0;  // which of the batches
  int first = 0;  // row within the batch
  int tokens = 0;
  int width = 0;           // of the kernel, at least `tokens`; columns beyond are zero
  std::size_t offset = 0;  // in the memory of all tiles
  bool is_wide() const { return width >= tile_tokens; }  // for a TileUnit
};

class ActivationTiles {
 public:
  enum class Kind { integers, floats, terms };  // integers: in.cols is a multiple of 32
  static Kind kind_for(const Kernels& kernels, WeightFormat format);

  // Cuts each batch into tiles, the widest first, and fills them. The memory is scratch: valid until the next
  // tiles of this kind. `column_order` is that of Weight, or empty.
  ActivationTiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches, Kind kind,
                  std::span<const std::int32_t> column_order);

  std::span<const Tile> of_batch(int batch) const;
  // From column `column` on, a multiple of 32.
  IntegerTile integers(const Tile& tile, int column) const;
  const float* floats(const Tile& tile, int column) const;
  const void* terms(const Tile& tile, int column) const;

  // Ascending.
  static std::span<const int> widths(const Kernels& kernels, Kind kind);
  // The most floats of scratch that `rows` rows in `batches` batches take.
  static std::size_t scratch(const Kernels& kernels, Kind kind, int cols, std::int64_t rows,
                             std::int64_t batches);

 private:
  struct Rows {
    Matrix in;
    const ExpertBatch& batch;
    std::span<const std::int32_t> column_order;
    float* reordered;  // memory for one row
    const float* operator[](int i) const;
  };
  void cut(const Kernels& kernels, std::span<const ExpertBatch> batches);
  void fill(const Kernels& kernels, const Tile& tile, const Rows& rows) const;
  void fill_integers(const Kernels& kernels, const Tile& tile, const Rows& rows) const;

  Kind kind_;
  int cols_;
  float* memory_ = nullptr;
  std::size_t size_ = 0;
  std::vector<Tile> tiles_;
  std::vector<std::size_t> first_of_batch_;
};

}  // namespace inferno::cpu
