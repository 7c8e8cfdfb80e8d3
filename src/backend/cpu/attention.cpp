// Each query against the cached keys and values of its sequence, over a paged, ragged batch.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"

namespace inferno::cpu {
namespace {

float dot(const float* a, const float* b, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Maps positions of a sequence to cache rows. Only positions inside the window are valid: table entries of
// blocks outside it are garbage.
class CacheRows {
 public:
  CacheRows(const AttentionCall& call, std::int64_t sequence)
      : table_(integers(call.group.block_table, sequence)), block_size_(call.step.block_size) {}
  std::int64_t operator()(int position) const {
    return std::int64_t{table_[position / block_size_]} * block_size_ + position % block_size_;
  }

 private:
  const std::int32_t* table_;
  int block_size_;
};

struct Query {
  std::int64_t row;
  std::int64_t sequence;
  int head;
};

// `room` is for one head, and for the score of every position that the query sees.
void attend_one(const Compute& compute, float* out, const float* query, const Query& at,
                const AttentionCall& call, float* room) {
  const AttentionSpec& spec = call.spec;
  float* scores = room + spec.head_dim;
  const int own = *integers(call.step.positions, at.row);
  const int first = spec.window > 0 ? std::max(0, own - spec.window + 1) : 0;
  const int kv_head = at.head / (spec.heads / spec.kv_heads);
  const CacheHead keys = key_head(call, kv_head), values = value_head(call, kv_head);
  const CacheRows row_of(call, at.sequence);
  const float sink = spec.sinks ? floats(call.weights.sinks)[at.head] : 0.0f;

  float top = spec.sinks ? sink : -INFINITY;
  for (int p = first; p <= own; ++p) {
    const float score = spec.scale * dot(query, keys.read(compute, row_of(p), room), spec.head_dim);
    scores[p - first] = score;
    top = std::max(top, score);
  }
  float sum = spec.sinks ? std::exp(sink - top) : 0.0f;
  for (int p = first; p <= own; ++p) sum += scores[p - first] = std::exp(scores[p - first] - top);
  std::fill_n(out, spec.head_dim, 0.0f);
  for (int p = first; p <= own; ++p) {
    const float share = scores[p - first] / sum;
    const float* value = values.read(compute, row_of(p), room);
    for (int d = 0; d < spec.head_dim; ++d) out[d] += share * value[d];
  }
}

}  // namespace

void attend(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call) {
  if (compute.kernels != nullptr) {
    attend_tiles(compute, out, qkv, call);
    return;
  }
  const AttentionSpec& spec = call.spec;
  const std::int32_t* starts = integers(call.step.query_start);
  const std::int32_t* ends = starts + call.step.context_len.rows + 1;
  const std::int32_t longest =
      call.step.context_len.rows == 0
          ? 0
          : *std::max_element(integers(call.step.context_len),
                              integers(call.step.context_len) + call.step.context_len.rows);
  const std::int64_t queries = std::int64_t{out.rows} * spec.heads;
  const std::int64_t cost = std::int64_t{2} * spec.head_dim * longest;
  compute.pool.parallel_for(queries, grain_for(compute.pool, queries, cost), [&](const auto& range) {
    float* room = compute.scratch.own(range.worker, static_cast<std::size_t>(longest + spec.head_dim));
    for (auto i = range.begin; i < range.end; ++i) {
      const std::int64_t row = i / spec.heads;
      const int head = static_cast<int>(i % spec.heads);
      const std::int64_t sequence = std::upper_bound(starts, ends, row) - starts - 1;
      const int offset = head * spec.head_dim;
      attend_one(compute, floats(out, row) + offset, floats(qkv, row) + offset, {row, sequence, head}, call,
                 room);
    }
  });
}

}  // namespace inferno::cpu
