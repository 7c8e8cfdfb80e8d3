#include "backend/cpu/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/cpu/panels.h"
#include "base/error.h"

namespace inferno::cpu {
namespace {

constexpr std::size_t max_piece_bytes = std::size_t{4} << 20;  // of one thread; a row may be longer

// Rows of one matrix.
struct Piece {
  std::int32_t matrix = 0, first = 0, rows = 0;
};

// Whole panels and whole groups of rows that change places, several pieces for each thread.
std::int32_t rows_at_once(const WeightSource& source, int threads) {
  constexpr std::int64_t pieces_per_thread = 4;
  const std::int64_t unit = source.alternating == 0
                                ? panel_rows
                                : std::lcm(std::int64_t{panel_rows}, std::int64_t{source.alternating});
  const std::int64_t even = source.all_rows() / (threads * pieces_per_thread);
  const std::int64_t most =
      static_cast<std::int64_t>(max_piece_bytes / std::max<std::size_t>(1, source.row_bytes()));
  const std::int64_t units = std::max<std::int64_t>(1, std::min(even, most) / unit);
  return static_cast<std::int32_t>(std::min<std::int64_t>(units * unit, source.rows));
}

// Reads one piece after the other into memory of its own.
class PieceReader {
 public:
  explicit PieceReader(const WeightSource& source) : source_(source) {}

  // Valid until the next call.
  std::span<const std::byte> rows(const Piece& piece) {
    stored_.resize(static_cast<std::size_t>(piece.rows) * source_.row_bytes());
    source_.read(std::int64_t{piece.matrix} * source_.rows + piece.first, stored_);
    if (source_.alternating == 0) return stored_;
    const WeightSource groups = {.format = source_.format,
                                 .rows = piece.rows,
                                 .cols = source_.cols,
                                 .alternating = source_.alternating,
                                 .read = {}};
    stored_ = in_decoder_order(groups, std::move(stored_));
    return stored_;
  }

 private:
  const WeightSource& source_;
  std::vector<std::byte> stored_;
};

void pack_rows(const Weight& to, const PanelShape& shape, const Piece& piece,
               std::span<const std::byte> rows) {
  std::byte* panels = to.memory.data() + static_cast<std::size_t>(piece.matrix) * shape.matrix_bytes() +
                      static_cast<std::size_t>(piece.first / panel_rows) * shape.panel_bytes();
  for (std::int32_t panel = 0; panel * panel_rows < piece.rows; ++panel) {
    pack_panel(to.format, panels + static_cast<std::size_t>(panel) * shape.panel_bytes(), rows.data(),
               piece.rows, to.cols, panel);
  }
}

void copy_rows(const Weight& to, const Piece& piece, std::span<const std::byte> rows) {
  const std::size_t row_bytes = bytes_for(to.format, static_cast<std::size_t>(to.cols));
  const std::int64_t row = std::int64_t{piece.matrix} * to.rows + piece.first;
  if (!rows.empty())
    std::memcpy(to.memory.data() + static_cast<std::size_t>(row) * row_bytes, rows.data(), rows.size());
}

}  // namespace

Weight load_weight(ThreadPool& pool, Arena& memory, const WeightSource& source, bool in_panels) {
  const int elements = block_elements(source.format);
  if (source.cols % elements != 0) {
    fail(ErrorKind::unsupported,
         fmt::format("a weight of {} columns cannot be {}: its blocks have {} elements", source.cols,
                     name_of(source.format), elements));
  }
  Weight weight = {source.format, source.count, source.rows, source.cols, {}, 0, {}};
  weight.column_order = source.column_order;
  const PanelShape shape = panel_shape(source.format, source.rows, source.cols);
  const bool packs = in_panels && shape.block_bytes != 0;
  weight.memory = memory.allocate(
      packs ? static_cast<std::size_t>(source.count) * shape.matrix_bytes() : source.bytes(), "weights");
  const std::int32_t step = rows_at_once(source, pool.threads());
  const std::int64_t pieces = step == 0 ? 0 : (source.rows + step - 1) / step;  // of one matrix
  std::vector<PieceReader> readers(static_cast<std::size_t>(pool.threads()), PieceReader(source));
  pool.parallel_for(source.count * pieces, 1, [&](const ThreadPool::Range& range) {
    PieceReader& reader = readers[static_cast<std::size_t>(range.worker)];
    for (auto i = range.begin; i < range.end; ++i) {
      Piece piece = {.matrix = static_cast<std::int32_t>(i / pieces),
                     .first = static_cast<std::int32_t>(i % pieces) * step};
      piece.rows = std::min(step, source.rows - piece.first);
      const std::span<const std::byte> rows = reader.rows(piece);
      packs ? pack_rows(weight, shape, piece, rows) : copy_rows(weight, piece, rows);
    }
  });
  return weight;
}

}  // namespace inferno::cpu
