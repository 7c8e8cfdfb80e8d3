#include "model/step.h"

#include "base/error.h"

namespace inferno {

StepBuffers::StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size)
    : backend_(backend), limits_(limits) {
  whole_ = {.tokens = allocate(limits.tokens, 1),
            .positions = allocate(limits.tokens, 1),
            .query_start = allocate(limits.sequences + 1, 1),
            .context_len = allocate(limits.sequences, 1),
            .logit_rows = allocate(limits.logit_rows, 1),
            .groups = {},
            .block_size = block_size};
  for (int group = 0; group < groups; ++group) {
    whole_.groups.push_back({.slots = allocate(limits.tokens, 1),
                             .block_table = allocate(limits.sequences, limits.blocks_per_sequence)});
  }
  current_ = whole_;
}

Matrix StepBuffers::allocate(int rows, int cols) {
  Matrix m = {nullptr, DType::i32, rows, cols};
  m.data = memory_.emplace_back(backend_.allocate(m.bytes(), "step inputs")).data();
  return m;
}

void StepBuffers::put(Matrix& to, const Matrix& whole, const std::vector<int>& values, int rows) {
  to = whole.top(rows);
  expects(values.size() * sizeof(int) == to.bytes(), "the values fill the matrix");
  backend_.upload(to, std::as_bytes(std::span(values)));
}

const StepInputs& StepBuffers::fill(std::span<const StepSlice> slices) {
  std::vector<int> tokens, positions, query_start = {0}, context_len, logit_rows;
  for (const StepSlice& slice : slices) {
    const int count = static_cast<int>(slice.tokens.size());
    tokens.insert(tokens.end(), slice.tokens.begin(), slice.tokens.end());
    for (int i = 0; i < count; ++i) positions.push_back(slice.start + i);
    const int end = static_cast<int>(tokens.size());
    for (int i = slice.logits; i > 0; --i) logit_rows.push_back(end - i);
    query_start.push_back(end);
    context_len.push_back(slice.start + count);
  }
  const int rows = static_cast<int>(tokens.size()), sequences = static_cast<int>(slices.size());
  expects(rows <= limits_.tokens && sequences <= limits_.sequences, "the slices fit the step");
  put(current_.tokens, whole_.tokens, tokens, rows);
  put(current_.positions, whole_.positions, positions, rows);
  put(current_.query_start, whole_.query_start, query_start, sequences + 1);
  put(current_.context_len, whole_.context_len, context_len, sequences);
  put(current_.logit_rows, whole_.logit_rows, logit_rows, static_cast<int>(logit_rows.size()));

  const int block_size = whole_.block_size;
  for (std::size_t group = 0; group < whole_.groups.size(); ++group) {
    std::vector<int> slots, table;
    for (const StepSlice& slice : slices) {
      const std::span<const int> blocks = slice.blocks[group];
      for (int i = 0; i < static_cast<int>(slice.tokens.size()); ++i) {
        const int position = slice.start + i;
        slots.push_back(blocks[static_cast<std::size_t>(position / block_size)] * block_size +
                        position % block_size);
      }
      table.insert(table.end(), blocks.begin(), blocks.end());
      table.resize(table.size() + static_cast<std::size_t>(limits_.blocks_per_sequence) - blocks.size(), -1);
    }
    put(current_.groups[group].slots, whole_.groups[group].slots, slots, rows);
    put(current_.groups[group].block_table, whole_.groups[group].block_table, table, sequences);
  }
  return current_;
}

}  // namespace inferno
