#include "model/step.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace inferno {
namespace {

// Integers: more would take longer to copy than the calls of several small copies.
constexpr std::size_t sent_at_once = 1 << 16;

}  // namespace

StepBuffers::StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size)
    : backend_(backend), limits_(limits) {
  whole_ = {.tokens = reserve(limits.tokens, 1),
            .positions = reserve(limits.tokens, 1),
            .query_start = reserve(limits.sequences + 1, 1),
            .context_len = reserve(limits.sequences, 1),
            .logit_rows = reserve(limits.logit_rows, 1),
            .groups = {},
            .block_size = block_size};
  for (int group = 0; group < groups; ++group) {
    whole_.groups.push_back({.slots = reserve(limits.tokens, 1),
                             .block_table = reserve(limits.sequences, limits.blocks_per_sequence)});
  }
  memory_ = backend_.allocate(image_.size() * sizeof(int), "step inputs");
  const auto place = [&](Matrix& m) { m.data = memory_.data() + reinterpret_cast<std::uintptr_t>(m.data); };
  for (Matrix* m :
       {&whole_.tokens, &whole_.positions, &whole_.query_start, &whole_.context_len, &whole_.logit_rows}) {
    place(*m);
  }
  for (KvGroup& group : whole_.groups) {
    place(group.slots);
    place(group.block_table);
  }
  current_ = whole_;
}

// A part of the image; its address is an offset until the memory is there.
Matrix StepBuffers::reserve(int rows, int cols) {
  Matrix m = {reinterpret_cast<std::byte*>(image_.size() * sizeof(int)), DType::i32, rows, cols};
  constexpr std::size_t aligned = 64;  // integers
  image_.resize((image_.size() + m.bytes() / sizeof(int) + aligned) / aligned * aligned);
  return m;
}

void StepBuffers::put(Matrix& to, const Matrix& whole, const std::vector<int>& values, int rows) {
  to = whole.top(rows);
  expects(values.size() * sizeof(int) == to.bytes(), "the values fill the matrix");
  if (image_.size() > sent_at_once) return backend_.upload(to, std::as_bytes(std::span(values)));
  std::copy(values.begin(), values.end(), image_.begin() + (to.data - memory_.data()) / 4);
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
  if (image_.size() <= sent_at_once) {
    backend_.upload({memory_.data(), DType::i32, 1, static_cast<std::int32_t>(image_.size())},
                    std::as_bytes(std::span(image_)));
  }
  return current_;
}

}  // namespace inferno
