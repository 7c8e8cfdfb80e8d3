// Attention of several queries that share a key head, 64 positions at a time. Keys are transposed once for
// all queries, so that 16 scores fill a vector; values are summed in memory order.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/elementwise.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

inline constexpr int score_vectors = attend_chunk / lanes;

// The cache rows of one chunk. Positions that no query sees repeat a neighbour's row, which is read and not
// used.
struct ChunkRows {
  int first = 0, count = 0;
  const float* keys[attend_chunk];
  const float* values[attend_chunk];
};

inline void find_rows(ChunkRows& rows, const AttendCall& call, int first) {
  const int left = call.last_known - first;
  rows.first = first;
  rows.count = left < attend_chunk ? left : attend_chunk;
  const int known = first < call.first_known ? call.first_known : first;
  int block = known / call.block_size, offset = known % call.block_size;
  std::int64_t row = static_cast<std::int64_t>(call.block_table[block]) * call.block_size + offset;
  for (int j = 0; j < attend_chunk; ++j) {
    if (j < rows.count && first + j >= known) {
      row = static_cast<std::int64_t>(call.block_table[block]) * call.block_size + offset;
      if (++offset == call.block_size) offset = 0, ++block;
    }
    rows.keys[j] = call.keys + row * call.row_stride;
    rows.values[j] = call.values + row * call.row_stride;
  }
}

// turned[d][j] = element d of key j. Meanwhile the keys of the next chunk are prefetched into the
// second-level cache: the rows of a head are too far apart for the hardware prefetcher.
template <class M>
void turn_keys(float* turned, const ChunkRows& rows, const ChunkRows& next, int head_dim) {
  for (int j = 0; j < rows.count; j += lanes) {
    for (int d = 0; d < head_dim; d += lanes) {
      const float* pieces[lanes];
      for (int i = 0; i < lanes; ++i) {
        pieces[i] = rows.keys[j + i] + d;
        __builtin_prefetch(next.keys[j + i] + d, 0, 2);
      }
      const int some = head_dim - d < lanes ? head_dim - d : lanes;
      M::transpose(turned + d * attend_chunk + j, attend_chunk, pieces, some);
    }
  }
}

template <class M, int queries, int vectors>
void score(float* scores, const float* turned, const float* const* query, const AttendCall& call) {
  typename M::Floats sums[queries][vectors];
  repeat<queries * vectors>([&]<int i>() { sums[i / vectors][i % vectors] = M::no_floats(); });
  for (int d = 0; d < call.head_dim; ++d) {
    typename M::Floats keys[vectors];
    repeat<vectors>([&]<int v>() { keys[v] = M::load(turned + d * attend_chunk + v * lanes); });
    repeat<queries>([&]<int q>() {
      const auto x = M::floats(query[q][d]);
      repeat<vectors>([&]<int v>() { sums[q][v] = M::fma(x, keys[v], sums[q][v]); });
    });
  }
  const auto scale = M::floats(call.scale);
  repeat<queries * vectors>([&]<int i>() {
    M::store(scores + (i / vectors) * attend_chunk + (i % vectors) * lanes,
             M::times(scale, sums[i / vectors][i % vectors]));
  });
}

// Turns scores into weights relative to the running maximum; returns the factor for earlier sums.
template <class M>
float soften(float* scores, int q, const ChunkRows& rows, const AttendCall& call) {
  const int last_here = rows.first + rows.count - 1;
  const int low = call.first[q] - rows.first;
  const int high = (call.last[q] < last_here ? call.last[q] : last_here) - rows.first;
  const auto zero = M::no_floats(), never = M::floats(-__builtin_inff());
  if (high < low || high < 0) {
    repeat<score_vectors>([&]<int v>() { M::store(scores + v * lanes, zero); });
    return 1.0f;
  }
  auto largest = never;
  repeat<score_vectors>([&]<int v>() {
    largest =
        M::larger_of(largest, M::only(M::load(scores + v * lanes), low - v * lanes, high - v * lanes, never));
  });
  const float chunk_top = M::top(largest);
  const float top = chunk_top > call.tops[q] ? chunk_top : call.tops[q];
  const auto tops = M::floats(top);
  auto total = zero;
  repeat<score_vectors>([&]<int v>() {
    const auto share = exponential<M>(M::minus(M::load(scores + v * lanes), tops));
    const auto visible = M::only(share, low - v * lanes, high - v * lanes, zero);
    M::store(scores + v * lanes, visible);
    total = M::plus(total, visible);
  });
  float shrink = 1.0f;
  if (top != call.tops[q]) {
    alignas(64) float factors[lanes];
    M::store(factors, exponential<M>(M::floats(call.tops[q] - top)));  // minus infinity at first: nothing yet
    shrink = factors[0];
  }
  call.tops[q] = top;
  call.totals[q] = call.totals[q] * shrink + M::sum(total);
  return shrink;
}

// One chunk for one group of queries.
struct GroupStep {
  const ChunkRows& rows;
  const ChunkRows* next;  // to be prefetched; null if an earlier group has done so
  const float* shares;    // [queries, attend_chunk]
  const float* shrink;    // [queries]
};

// sums = shrink * sums + shares * values for `vectors` vectors of the head, the last of `some` elements.
template <class M, int queries, int vectors>
void add_values(float* sums, std::ptrdiff_t stride, const GroupStep& step, int d, int some) {
  const ChunkRows& rows = step.rows;
  typename M::Floats total[queries][vectors];
  repeat<queries * vectors>([&]<int i>() {
    constexpr int q = i / vectors, v = i % vectors;
    total[q][v] = M::times(M::floats(step.shrink[q]), M::load(sums + q * stride + d + v * lanes));
  });
  for (int j = 0; j < rows.count; ++j) {
    typename M::Floats value[vectors];
    if (step.next != nullptr) {
      repeat<vectors>([&]<int v>() { __builtin_prefetch(step.next->values[j] + d + v * lanes, 0, 2); });
    }
    repeat<vectors>([&]<int v>() {
      const float* from = rows.values[j] + d + v * lanes;
      value[v] = v == vectors - 1 && some < lanes ? M::load_some(from, some) : M::load(from);
    });
    repeat<queries>([&]<int q>() {
      const auto share = M::floats(step.shares[q * attend_chunk + j]);
      repeat<vectors>([&]<int v>() { total[q][v] = M::fma(share, value[v], total[q][v]); });
    });
  }
  repeat<queries * vectors>([&]<int i>() {
    constexpr int q = i / vectors, v = i % vectors;
    M::store(sums + q * stride + d + v * lanes, total[q][v]);
  });
}

template <class M, int queries>
void attend_group(const AttendCall& call, int q, const ChunkRows& rows, const ChunkRows& next,
                  const float* turned, float* scores) {
  constexpr int vectors = M::attend_vectors;
  static_assert(score_vectors % vectors == 0);
  for (int v = 0; v < score_vectors; v += vectors) {
    score<M, queries, vectors>(scores + v * lanes, turned + v * lanes, call.query + q, call);
  }
  float shrink[queries];
  for (int i = 0; i < queries; ++i) shrink[i] = soften<M>(scores + i * attend_chunk, q + i, rows, call);
  const GroupStep step = {rows, q == 0 ? &next : nullptr, scores, shrink};
  const int padded = call.padded_dim;
  float* sums = call.sums + static_cast<std::ptrdiff_t>(q) * padded;
  int d = 0;
  for (; d + vectors * lanes <= padded; d += vectors * lanes) {
    const int some = call.head_dim - d - (vectors - 1) * lanes;
    add_values<M, queries, vectors>(sums, padded, step, d, some);
  }
  for (; d < padded; d += lanes) {
    add_values<M, queries, 1>(sums, padded, step, d, call.head_dim - d);
  }
}

template <class M, int left>
void attend_rest(const AttendCall& call, int q, const ChunkRows& rows, const ChunkRows& next,
                 const float* turned, float* scores) {
  if constexpr (left > 0) {
    if (call.queries - q == left) {
      attend_group<M, left>(call, q, rows, next, turned, scores);
    } else {
      attend_rest<M, left - 1>(call, q, rows, next, turned, scores);
    }
  }
}

template <class M>
void attend(const AttendCall& call) {
  float* turned = call.scratch;
  float* scores = turned + static_cast<std::ptrdiff_t>(call.padded_dim) * attend_chunk;
  ChunkRows rows[2];
  find_rows(rows[0], call, call.begin);
  for (int first = call.begin, at = 0; first < call.end; first += attend_chunk, at ^= 1) {
    const bool is_last = first + attend_chunk >= call.last_known;
    find_rows(rows[at ^ 1], call, is_last ? first : first + attend_chunk);
    turn_keys<M>(turned, rows[at], rows[at ^ 1], call.head_dim);
    int q = 0;
    for (; q + M::attend_queries <= call.queries; q += M::attend_queries) {
      attend_group<M, M::attend_queries>(call, q, rows[at], rows[at ^ 1], turned, scores);
    }
    attend_rest<M, M::attend_queries - 1>(call, q, rows[at], rows[at ^ 1], turned, scores);
  }
}

}  // namespace
}  // namespace inferno::cpu
