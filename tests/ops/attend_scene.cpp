#include "ops/attend_scene.h"

#include <algorithm>
#include <limits>

#include "ops/reference.h"

namespace inferno {
namespace {

constexpr int released_block = 0;  // contains only poison

int blocks_for(int positions, int block_size) {
  return (positions + block_size - 1) / block_size;
}

// Positions before this one are outside every query's window.
int first_visible(const Sequence& sequence, int window) {
  return window == 0 ? 0 : std::max(0, sequence.context - sequence.rows - window + 1);
}

}  // namespace

AttendScene::AttendScene(Device& device, const AttendCase& attend_case)
    : device_(device), case_(attend_case) {
  const AttentionSpec& spec = case_.spec;
  const int kv_cols = spec.kv_heads * spec.head_dim;
  int rows = 0, blocks = 1;
  for (const Sequence& sequence : case_.sequences) {
    const auto seed = static_cast<std::uint64_t>(100 + keys_.size());
    keys_.push_back(random_matrix(sequence.context, kv_cols, case_.spread, seed));
    values_.push_back(random_matrix(sequence.context, kv_cols, 1.0, seed + 1000));
    rows += sequence.rows;
    blocks += blocks_for(sequence.context, case_.block_size);
    max_blocks_ = std::max(max_blocks_, blocks_for(sequence.context, case_.block_size));
  }
  max_blocks_ += 1;  // a column that no sequence uses
  queries_ = random_matrix(rows, spec.heads * spec.head_dim + 2 * kv_cols, case_.spread, 61);
  sinks_ = random_matrix(1, spec.heads, 2.0, 62);
  key_scales_ = value_scales_ = HostMatrix(1, spec.kv_heads);
  for (std::size_t h = 0; h < key_scales_.values.size(); ++h) {
    key_scales_.values[h] = 0.03 * static_cast<double>(h + 1);
    value_scales_.values[h] = 0.7 / static_cast<double>(h + 1);
  }
  cached_keys_ = HostMatrix(blocks * case_.block_size, kv_cols);
  std::fill(cached_keys_.values.begin(), cached_keys_.values.end(), std::numeric_limits<double>::quiet_NaN());
  cached_values_ = cached_keys_;
  std::vector<std::int32_t> pool = shuffled(blocks, 63);
  std::erase(pool, released_block);
  place(pool);
  fill_inputs();
}

// Distributes the visible positions over the blocks of the pool.
void AttendScene::place(const std::vector<std::int32_t>& pool) {
  block_table_.assign(case_.sequences.size() * static_cast<std::size_t>(max_blocks_), released_block);
  auto next = pool.begin();
  for (std::size_t s = 0; s < case_.sequences.size(); ++s) {
    const Sequence& sequence = case_.sequences[s];
    const int visible = first_visible(sequence, case_.spec.window);
    for (int p = visible; p < sequence.context; ++p) {
      const std::size_t entry =
          s * static_cast<std::size_t>(max_blocks_) + static_cast<std::size_t>(p / case_.block_size);
      if (block_table_[entry] == released_block) block_table_[entry] = *next++;
      const int row = block_table_[entry] * case_.block_size + p % case_.block_size;
      std::ranges::copy(keys_[s].row(p), cached_keys_.row(row).begin());
      std::ranges::copy(values_[s].row(p), cached_values_.row(row).begin());
    }
  }
}

void AttendScene::fill_inputs() {
  std::vector<std::int32_t> starts = {0}, lengths, positions, slots;
  for (std::size_t s = 0; s < case_.sequences.size(); ++s) {
    const Sequence& sequence = case_.sequences[s];
    starts.push_back(starts.back() + sequence.rows);
    lengths.push_back(sequence.context);
    for (int p = sequence.context - sequence.rows; p < sequence.context; ++p) {
      const std::size_t entry =
          s * static_cast<std::size_t>(max_blocks_) + static_cast<std::size_t>(p / case_.block_size);
      positions.push_back(p);
      slots.push_back(block_table_[entry] * case_.block_size + p % case_.block_size);
    }
  }
  const KvGroup group = {.slots = device_.upload(slots),
                         .block_table = device_.upload(block_table_, max_blocks_)};
  step_ = {.tokens = device_.upload(positions),
           .positions = device_.upload(positions),
           .query_start = device_.upload(starts),
           .context_len = device_.upload(lengths),
           .logit_rows = device_.upload(std::vector<std::int32_t>{0}),
           .groups = {group},
           .block_size = case_.block_size};
}

// Rounds the rows of a cache to its type, FP8 after a division by the scale of each head.
Matrix AttendScene::upload_scaled(HostMatrix& values, DType type, const HostMatrix& scales) {
  if (type != DType::f8_e4m3) return device_.upload(values, type);
  const auto scale_of = [&](std::size_t i) {
    const auto dim = static_cast<std::size_t>(case_.spec.head_dim);
    return scales.values[i % static_cast<std::size_t>(values.cols) / dim];
  };
  for (std::size_t i = 0; i < values.values.size(); ++i) values.values[i] /= scale_of(i);
  const Matrix matrix = device_.upload(values, type);
  for (std::size_t i = 0; i < values.values.size(); ++i) values.values[i] *= scale_of(i);
  return matrix;
}

HostMatrix AttendScene::found() {
  const DType own = device_.backend().cache_type();
  const CacheTypes types = case_.cache.value_or(CacheTypes{own, own});
  AttentionWeights weights;
  if (types.keys == DType::f8_e4m3) weights.key_scales = device_.upload(key_scales_, DType::f32);
  if (types.values == DType::f8_e4m3) weights.value_scales = device_.upload(value_scales_, DType::f32);
  const KvLayer cache = {upload_scaled(cached_keys_, types.keys, key_scales_),
                         upload_scaled(cached_values_, types.values, value_scales_)};
  // The reference must read values that the type of the cache can represent.
  for (HostMatrix& keys : keys_) upload_scaled(keys, types.keys, key_scales_);
  for (HostMatrix& values : values_) upload_scaled(values, types.values, value_scales_);
  if (case_.spec.sinks) weights.sinks = device_.upload(sinks_, DType::f32);
  const Matrix qkv = device_.upload(queries_, device_.activations());
  const Matrix out =
      device_.poisoned(queries_.rows, case_.spec.heads * case_.spec.head_dim, device_.activations());
  device_.backend().attend(
      out, qkv,
      {.spec = case_.spec, .weights = weights, .step = step_, .group = step_.groups[0], .cache = cache});
  return device_.download(out);
}

HostMatrix AttendScene::head_of(const HostMatrix& rows, int first, int count, int kv_head) const {
  const auto dim = static_cast<std::size_t>(case_.spec.head_dim);
  HostMatrix head(count, case_.spec.head_dim);
  for (int r = 0; r < count; ++r) {
    std::ranges::copy(rows.row(first + r).subspan(static_cast<std::size_t>(kv_head) * dim, dim),
                      head.row(r).begin());
  }
  return head;
}

HostMatrix AttendScene::expected() const {
  const AttentionSpec& spec = case_.spec;
  const auto dim = static_cast<std::size_t>(spec.head_dim);
  HostMatrix out(queries_.rows, spec.heads * spec.head_dim);
  int row = 0;
  for (std::size_t s = 0; s < case_.sequences.size(); ++s) {
    const Sequence& sequence = case_.sequences[s];
    for (int own = sequence.context - sequence.rows; own < sequence.context; ++own, ++row) {
      const int first = spec.window == 0 ? 0 : std::max(0, own - spec.window + 1);
      for (int head = 0; head < spec.heads; ++head) {
        const int kv_head = head / (spec.heads / spec.kv_heads);
        const reference::Seen seen = {head_of(keys_[s], first, own + 1 - first, kv_head),
                                      head_of(values_[s], first, own + 1 - first, kv_head)};
        const std::size_t offset = static_cast<std::size_t>(head) * dim;
        const double* sink = spec.sinks ? &sinks_.values[static_cast<std::size_t>(head)] : nullptr;
        const auto result = reference::attend(queries_.row(row).subspan(offset, dim), seen, spec.scale, sink);
        std::ranges::copy(result, out.row(row).subspan(offset).begin());
      }
    }
  }
  return out;
}

}  // namespace inferno
