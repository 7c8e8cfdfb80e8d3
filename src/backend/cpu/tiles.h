// Activations as the panel kernels read them: the rows of a batch in groups of a few tokens, side by side,
// as whole numbers or as floats.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/operations.h"

namespace inferno::cpu {

struct Tile {
  int batch = 0;  // which of the batches
  int first = 0;  // row within the batch
  int tokens = 0;
  int width = 0;                         // of the kernel, at least `tokens`; columns beyond are zero
  std::size_t integers = 0, floats = 0;  // where they begin in the memory of all tiles
};

class Tiles {
 public:
  struct Wanted {
    bool integers = false;  // for quantized weights: in.cols is then a multiple of 32
    bool floats = false;
  };
  // Cuts each batch into tiles and fills them. The memory is compute.scratch's and lasts until the next.
  Tiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches, Wanted wanted);

  std::span<const Tile> of_batch(int batch) const;
  // From column `column` on, a multiple of 32.
  IntegerTile integers(const Tile& tile, int column) const;
  const float* floats(const Tile& tile, int column) const;

 private:
  void cut(const Compute& compute, std::span<const ExpertBatch> batches, Wanted wanted);
  void fill(const Compute& compute, const Tile& tile, const Matrix& in, const ExpertBatch& batch,
            Wanted wanted) const;

  int cols_;
  float* memory_ = nullptr;
  std::size_t size_ = 0;
  std::vector<Tile> tiles_;
  std::vector<std::size_t> first_of_batch_;
};

}  // namespace inferno::cpu
