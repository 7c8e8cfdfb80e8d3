#include "model/step.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>

#include "base/error.h"

namespace inferno {
namespace {

StepTokens tokens_from(std::span<const StepSlice> slices) {
  bool is_given = true, is_drawn = true;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    is_given = is_given && slices[i].drawn == StepSlice::given;
    is_drawn = is_drawn && slices[i].drawn == static_cast<int>(i);
  }
  return is_given ? StepTokens::given : is_drawn ? StepTokens::drawn : StepTokens::gathered;
}

}  // namespace

StepBuffers::StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size)
    : backend_(backend), limits_(limits) {
  step_.groups.resize(static_cast<std::size_t>(groups));
  step_.block_size = block_size;
  lay_out({limits.tokens, limits.sequences, limits.logit_rows, limits.blocks_per_sequence, /*gathers=*/true});
  memory_ = backend_.allocate(image_.size() * sizeof(int), "step inputs");
}

// All inputs are contiguous, so that one copy transfers them; block tables, which seldom change, come last.
// The first call, before memory is allocated, only computes the size.
void StepBuffers::lay_out(const Extents& extents) {
  constexpr std::size_t aligned = 16;  // integers
  std::size_t end = 0;
  const auto place = [&](Matrix& matrix, int rows, int cols) {
    matrix = {memory_.data(), DType::i32, rows, cols};
    if (matrix.data != nullptr) matrix.data += end * sizeof(int);
    end += (matrix.bytes() / sizeof(int) + aligned - 1) / aligned * aligned;
  };
  // Tokens that were drawn stay where they are until they are gathered.
  place(step_.tokens, extents.gathers ? std::max(extents.tokens, limits_.logit_rows) : extents.tokens, 1);
  drawn_end_ = static_cast<std::size_t>(step_.tokens.rows);
  if (extents.gathers) {
    place(given_, extents.tokens, 1);
    place(sources_, extents.tokens, 1);
    place(step_.tokens, extents.tokens, 1);
  }
  place(step_.positions, extents.tokens, 1);
  place(step_.query_start, extents.sequences + 1, 1);
  place(step_.context_len, extents.sequences, 1);
  place(step_.logit_rows, extents.logit_rows, 1);
  for (KvGroup& group : step_.groups) place(group.slots, extents.tokens, 1);
  for (KvGroup& group : step_.groups) {
    place(group.block_table, extents.sequences, extents.blocks);
  }
  if (extents == extents_) return;
  extents_ = extents;
  image_.assign(end, 0);  // so that the alignment gaps never differ
  uploaded_.clear();
}

std::span<int> StepBuffers::image_of(const Matrix& matrix) {
  const auto begin = static_cast<std::size_t>(matrix.data - memory_.data()) / sizeof(int);
  return std::span(image_).subspan(begin, matrix.bytes() / sizeof(int));
}

const StepInputs& StepBuffers::fill(std::span<const StepSlice> slices) {
  int rows = 0, logit_rows = 0;
  for (const StepSlice& slice : slices) {
    rows += static_cast<int>(slice.tokens.size());
    logit_rows += slice.logits;
  }
  const int sequences = static_cast<int>(slices.size());
  const auto is_longer = [](const StepSlice& slice) { return slice.tokens.size() != 1; };
  step_.decodes = static_cast<int>(std::ranges::find_if(slices, is_longer) - slices.begin());
  expects(rows <= limits_.tokens && sequences <= limits_.sequences && logit_rows <= limits_.logit_rows,
          "the slices fit the step");
  const StepTokens from = tokens_from(slices);
  lay_out({rows, sequences, logit_rows, table_columns(slices), from == StepTokens::gathered});
  const std::span<int> positions = image_of(step_.positions), starts = image_of(step_.query_start),
                       lengths = image_of(step_.context_len), logits = image_of(step_.logit_rows);
  std::size_t row = 0, logit = 0;
  starts[0] = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const StepSlice& slice = slices[i];
    const std::size_t count = slice.tokens.size();
    const std::span<int> own = positions.subspan(row, count);
    std::iota(own.begin(), own.end(), slice.start);
    row += count;
    for (int j = slice.logits; j > 0; --j) logits[logit++] = static_cast<int>(row) - j;
    starts[i + 1] = static_cast<int>(row);
    lengths[i] = slice.start + static_cast<int>(count);
  }
  for (std::size_t group = 0; group < step_.groups.size(); ++group) fill_group(slices, group);
  fill_tokens(slices);
  upload(from);
  if (from == StepTokens::gathered) {
    const Matrix all = {memory_.data(), DType::i32, static_cast<std::int32_t>(image_.size()), 1};
    backend_.take_rows(step_.tokens, all, sources_);
  }
  return step_;
}

// As many as the longest sequence needs, because the tables of a step of 256 sequences with all columns of a
// context of 131,072 tokens would be 8 MB. Powers of two, so that few recorded graphs differ in them.
int StepBuffers::table_columns(std::span<const StepSlice> slices) const {
  std::size_t columns = 64;
  for (const StepSlice& slice : slices) {
    for (const std::span<const int>& blocks : slice.blocks) columns = std::max(columns, blocks.size());
  }
  return std::min(static_cast<int>(std::bit_ceil(columns)), limits_.blocks_per_sequence);
}

void StepBuffers::fill_tokens(std::span<const StepSlice> slices) {
  const bool gathers = extents_.gathers;
  const std::span<int> tokens = image_of(gathers ? given_ : step_.tokens);
  std::size_t row = 0;
  for (const StepSlice& slice : slices) {
    std::ranges::copy(slice.tokens, tokens.subspan(row).begin());
    if (gathers) {
      const std::span<int> sources = image_of(sources_).subspan(row, slice.tokens.size());
      std::iota(
          sources.begin(), sources.end(),
          slice.drawn == StepSlice::given ? static_cast<int>(&tokens[row] - image_.data()) : slice.drawn);
    }
    row += slice.tokens.size();
  }
}

// Uploads the range that differs from what is on the device. Tokens always count as different, because the
// sampler may have overwritten them.
void StepBuffers::upload(StepTokens tokens) {
  const std::size_t after_tokens = drawn_end_;
  std::size_t begin = tokens == StepTokens::given ? 0 : after_tokens, end = image_.size();
  if (!uploaded_.empty()) {
    while (end > after_tokens && image_[end - 1] == uploaded_[end - 1]) --end;
    while (begin >= after_tokens && begin < end && image_[begin] == uploaded_[begin]) ++begin;
  }
  const std::span<const int> values = std::span(image_).subspan(begin, end - begin);
  if (!values.empty()) {
    backend_.upload(
        {memory_.data() + begin * sizeof(int), DType::i32, 1, static_cast<std::int32_t>(values.size())},
        std::as_bytes(values));
  }
  uploaded_.resize(image_.size());
  std::swap(uploaded_, image_);  // the next step writes every number except the gaps
}

void StepBuffers::fill_group(std::span<const StepSlice> slices, std::size_t group) {
  const std::span<int> slots = image_of(step_.groups[group].slots);
  std::span<int> table = image_of(step_.groups[group].block_table);
  const auto cols = static_cast<std::size_t>(extents_.blocks);
  std::size_t row = 0;
  for (const StepSlice& slice : slices) {
    const std::span<const int> blocks = slice.blocks[group];
    expects(blocks.size() <= cols, "a sequence's blocks fit its row of the table");
    for (int i = 0; i < static_cast<int>(slice.tokens.size()); ++i) {
      const int position = slice.start + i;
      slots[row++] = blocks[static_cast<std::size_t>(position / step_.block_size)] * step_.block_size +
                     position % step_.block_size;
    }
    std::ranges::copy(blocks, table.begin());
    std::ranges::fill(table.subspan(blocks.size(), cols - blocks.size()), -1);
    table = table.subspan(cols);
  }
}

}  // namespace inferno
