// The blocks that sample a row together (eight as a cluster, one on devices without clusters), the row's data
// and settings, and the edits before the draw. Each warp of each block takes a contiguous range of whatever
// is visited, in order.
#pragma once

#include "backend/cuda/device/cluster.cuh"
#include "backend/cuda/device/racecheck_sizes.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/sampling.h"

namespace inferno::cuda {

constexpr int sample_warps = sample_threads / 32;

struct Range {
  int begin = 0, end = 0;
  __device__ int size() const { return end - begin; }
};

// One of `parts` equal ranges; all but the last are multiples of 32.
__device__ inline Range part_of(int count, int parts, int part) {
  const int each = (count + 32 * parts - 1) / (32 * parts) * 32;
  const int begin = min(count, part * each);
  return {begin, min(count, begin + each)};
}

__device__ inline int lane_id() {
  return static_cast<int>(threadIdx.x) % 32;
}
__device__ inline int warp_id() {
  return static_cast<int>(threadIdx.x) / 32;
}

// Visits every index below `count` once per block.
template <class Visit>
__device__ void for_each(int count, const Visit& visit) {
  const Range own = part_of(count, sample_warps, warp_id());
#pragma unroll 4
  for (int i = own.begin + lane_id(); i < own.end; i += 32) visit(i);
}

// Reduces any plain record of 32-bit words over `lanes` neighboring lanes. `combine` must be associative and
// commutative.
template <int lanes = 32, class Record, class Combine>
__device__ Record warp_reduce(Record value, const Combine& combine) {
  static_assert(sizeof(Record) % 4 == 0);
  for (int offset = lanes / 2; offset > 0; offset >>= 1) {
    Record other;
    const auto* in = reinterpret_cast<const std::uint32_t*>(&value);
    auto* out = reinterpret_cast<std::uint32_t*>(&other);
#pragma unroll
    for (std::size_t i = 0; i < sizeof(Record) / 4; ++i) out[i] = __shfl_xor_sync(full_warp, in[i], offset);
    value = combine(value, other);
  }
  return value;
}

// The sum over the block's earlier warps; `all` becomes the sum over all warps.
template <class Number>
__device__ Number exclusive_warp_sum(Number own, Number& all) {
  __shared__ Number numbers[sample_warps];
  __syncthreads();  // all reads of the previous call are done
  if (lane_id() == 0) numbers[warp_id()] = own;
  __syncthreads();
  Number before = 0;
  all = 0;
  for (int warp = 0; warp < sample_warps; ++warp) {
    before += warp < warp_id() ? numbers[warp] : 0;
    all += numbers[warp];
  }
  return before;
}

class RowCluster {
 public:
  // Two slots per block alternate: between a read of a slot and the next write to it, all blocks have
  // synchronized.
  struct alignas(8) Slot {
    std::uint32_t words[16];
  };
  using Smem = Slot[2][sample_max_blocks];

  __device__ RowCluster(Smem& smem, int blocks, int rank) : smem_(smem), blocks_(blocks), rank_(rank) {}
  __device__ int blocks() const { return blocks_; }
  __device__ int rank() const { return rank_; }
  __device__ bool is_leader() const { return rank_ == 0 && threadIdx.x == 0; }

  // Every block's record, by rank. Called by all threads; those of a block pass the same record.
  template <class Record>
  __device__ const Record& value_of(int rank, const Record* all) const {
    return *reinterpret_cast<const Record*>(reinterpret_cast<const Slot*>(all) + rank);
  }
  template <class Record>
  __device__ const Record* all_gather(const Record& own) {
    static_assert(sizeof(Record) <= sizeof(Slot) && sizeof(Record) % 4 == 0);
    Slot* slots = smem_[turn_];
    turn_ ^= 1;
    const auto* words = reinterpret_cast<const std::uint32_t*>(&own);
    if (static_cast<int>(threadIdx.x) < blocks_) {
#pragma unroll
      for (std::size_t i = 0; i < sizeof(Record) / 4; ++i) {
        if (blocks_ == 1) {
          slots[0].words[i] = words[i];
        } else {
          store_remote(remote_address(&slots[rank_].words[i], static_cast<int>(threadIdx.x)), words[i]);
        }
      }
    }
    sync();
    return reinterpret_cast<const Record*>(slots);
  }
  template <class Record, class Combine>
  __device__ Record reduce(Record value, const Combine& combine) {
    value = block_reduce(value, combine);
    if (blocks_ == 1) return value;
    const Record* all = all_gather(value);
    value = value_of(0, all);
    for (int rank = 1; rank < blocks_; ++rank) value = combine(value, value_of(rank, all));
    return value;
  }
  __device__ double sum(double value) {
    return reduce(value, [](double a, double b) { return a + b; });
  }

  __device__ void sync() const {
    __syncwarp();
    if (blocks_ == 1) return __syncthreads();
    cluster_arrive();
    cluster_wait();
  }

 private:
  template <class Record, class Combine>
  __device__ static Record block_reduce(Record value, const Combine& combine) {
    __shared__ alignas(Record)
        std::byte bytes[sample_warps * sizeof(Record)];  // raw bytes: no thread runs a constructor
    auto* smem = reinterpret_cast<Record*>(bytes);
    value = warp_reduce(value, combine);
    __syncthreads();
    if (lane_id() == 0) smem[warp_id()] = value;
    __syncthreads();
    return warp_reduce<sample_warps>(smem[lane_id() % sample_warps], combine);
  }

  Smem& smem_;
  const int blocks_, rank_;
  int turn_ = 0;
};

struct Row {
  const SamplingRow& settings;
  const ListEntry* lists;
  const std::uint32_t* mask;  // null: every token
  float* logits;
  int vocab;
  // Scratch: weights and keys of the candidates; original logits of edited tokens.
  float *weights, *keys, *saved;
  std::int32_t* tokens;
  Range here, choices_here;  // this block's part of the vocabulary and of the tokens that may be drawn

  __device__ const ListEntry* begin(const ListRange& range) const { return lists + range.begin; }
  __device__ static int size(const ListRange& range) { return range.end - range.begin; }
  __device__ int choices() const {
    return settings.allowed.begin == settings.allowed.end ? vocab : size(settings.allowed);
  }
  __device__ std::int32_t choice(int i) const {
    return settings.allowed.begin == settings.allowed.end ? i : begin(settings.allowed)[i].token;
  }
  __device__ bool is_masked() const { return mask != nullptr; }
  // The tokens of a warp's visit share a word.
  __device__ bool is_in_mask(std::int32_t token) const {
    return mask == nullptr || (mask[token / 32] >> (token % 32) & 1u) != 0;
  }
  __device__ bool penalizes() const {
    return size(settings.history) > 0 &&
           (settings.repetition != 1.0f || settings.presence != 0.0f || settings.frequency != 0.0f);
  }
};

// Index of the token in an ascending list; -1 if it is missing.
__device__ inline int find(const ListEntry* list, int size, std::int32_t token) {
  int low = 0, high = size;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list[middle].token < token) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < size && list[low].token == token ? low : -1;
}

// Every block edits the tokens that it will visit. With a list of allowed tokens, the first block has all of
// them.
__device__ inline void edit(const Row& row) {
  const SamplingRow& settings = row.settings;
  const bool listed = row.choices() != row.vocab;
  const auto mine = [&](std::int32_t token) {
    return listed ? row.choices_here.size() > 0 : token >= row.here.begin && token < row.here.end;
  };
  for_each(row.penalizes() ? Row::size(settings.history) : 0, [&](int i) {
    const ListEntry entry = row.begin(settings.history)[i];
    if (!mine(entry.token)) return;
    float l = row.logits[entry.token];
    row.saved[i] = l;
    l = l > 0.0f ? l / settings.repetition : l * settings.repetition;
    if (entry.value > 0.0f) l -= settings.presence + settings.frequency * entry.value;
    row.logits[entry.token] = l;
  });
  __syncthreads();
  for_each(Row::size(settings.bias), [&](int i) {
    const ListEntry entry = row.begin(settings.bias)[i];
    if (!mine(entry.token)) return;
    row.saved[row.vocab + i] = row.logits[entry.token];
    row.logits[entry.token] += entry.value;
  });
  __syncthreads();
}

// The model's own logit of a token, before edit(), which may have run in another block: the load must bypass
// L1.
__device__ inline float original(const Row& row, std::int32_t token) {
  const SamplingRow& settings = row.settings;
  if (row.penalizes()) {
    const int at = find(row.begin(settings.history), Row::size(settings.history), token);
    if (at >= 0) return __ldcg(row.saved + at);
  }
  const int at = find(row.begin(settings.bias), Row::size(settings.bias), token);
  return __ldcg(at >= 0 ? row.saved + row.vocab + at : row.logits + token);
}

}  // namespace inferno::cuda
