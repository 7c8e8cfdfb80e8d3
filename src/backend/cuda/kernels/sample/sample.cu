// Samples tokens as backend/sampling.h specifies. A row belongs to a cluster of blocks (sample_cluster.cuh)
// whose size depends on the device alone, so that a row's sums do not depend on the batch.
#include <bit>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/sample/sample.h"
#include "backend/cuda/kernels/sample/sample_draw.cuh"

namespace inferno::cuda {
namespace {

struct SampleCall {
  std::byte* out;
  float* logits;
  const SamplingRow* rows;
  const ListEntry* lists;
  const std::uint32_t* masks;
  std::int32_t* tokens;  // may be null
  float* scratch;
  int count, vocab, mask_cols, out_cols;
  float one;  // see Draw
};

struct LogitScan {
  Candidate best;
  std::int32_t finite;
};
struct MaskedScan {
  LogitScan all;
  Candidate best;  // of the tokens in the mask
};

__device__ LogitScan joined(const LogitScan& a, const LogitScan& b) {
  return {comes_first(a.best, b.best) ? a.best : b.best, a.finite & b.finite};
}

// Four logits; -infinity past the end.
__device__ float4 four_logits(const Row& row, int first) {
  const float* from = row.logits + first;
  if (first + 4 <= row.here.end && reinterpret_cast<std::uintptr_t>(from) % sizeof(float4) == 0) {
    return *reinterpret_cast<const float4*>(from);
  }
  const auto at = [&](int i) { return first + i < row.here.end ? from[i] : -INFINITY; };
  return {at(0), at(1), at(2), at(3)};
}

// Visits all logits of this block, and some -infinity past its end. `at_once` loads are in flight.
template <int at_once, class LookAt>
__device__ void scan(const Row& row, const LookAt& look_at) {
  constexpr int stride = 4 * sample_threads;
  for (int first = row.here.begin + 4 * static_cast<int>(threadIdx.x); first < row.here.end;
       first += at_once * stride) {
    float4 values[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) values[j] = four_logits(row, first + j * stride);
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      look_at(values[j].x, first + j * stride);
      look_at(values[j].y, first + j * stride + 1);
      look_at(values[j].z, first + j * stride + 2);
      look_at(values[j].w, first + j * stride + 3);
    }
  }
}

// Whether all logits are finite, and the largest one.
__device__ LogitScan scan_logits(const Row& row, RowCluster& cluster) {
  LogitScan found = {{-INFINITY, row.vocab}, 1};
  scan<7>(row, [&](float value, int token) {
    if (token < row.here.end && !isfinite(value)) found.finite = 0;
    if (value > found.best.value) found.best = {value, token};
  });
  return cluster.reduce(found, joined);
}

// The same for a row with a mask, and the largest one in the mask. More loads at once would spill.
__device__ MaskedScan scan_masked(const Row& row, RowCluster& cluster) {
  MaskedScan found = {{{-INFINITY, row.vocab}, 1}, {-INFINITY, row.vocab}};
  scan<3>(row, [&](float value, int token) {
    if (token < row.here.end && !isfinite(value)) found.all.finite = 0;
    if (value > found.all.best.value) found.all.best = {value, token};
    // Past the end the value is -infinity, so no bit is read there.
    if (value > found.best.value && row.is_in_mask(token)) found.best = {value, token};
  });
  return cluster.reduce(found, [](const MaskedScan& a, const MaskedScan& b) {
    return MaskedScan{joined(a.all, b.all), comes_first(a.best, b.best) ? a.best : b.best};
  });
}

// Returns the logarithm of the sum of all weights and lists the most likely tokens' log probabilities.
__device__ double list_likeliest(const Row& row, RowCluster& cluster, Candidate best, ListEntry* alternatives,
                                 int wanted) {
  double sum = 0.0;
  for_each(row.here.size(),
           [&](int i) { sum += static_cast<double>(expf(row.logits[row.here.begin + i] - best.value)); });
  const double log_sum = static_cast<double>(best.value) + log(cluster.sum(sum));
  for (int listed = 0; listed < wanted; ++listed) {
    if (listed > 0) best = next_best(row, cluster, best, true);
    if (cluster.is_leader()) {
      alternatives[listed] = {best.token, static_cast<float>(static_cast<double>(best.value) - log_sum)};
    }
  }
  return log_sum;
}

// All threads of the cluster return the same draw; only the leader has the log probability.
__device__ SampleHead sample_row(const Row& row, RowCluster& cluster, ListEntry* alternatives, float one) {
  const SamplingRow& settings = row.settings;
  const MaskedScan masked = row.is_masked() ? scan_masked(row, cluster) : MaskedScan{};
  const LogitScan found = row.is_masked() ? masked.all : scan_logits(row, cluster);
  if (found.finite == 0) return {.token = -1, .outcome = SampleOutcome::not_finite};
  const bool wants_logprob = settings.alternatives >= 0;
  const int listed = wants_logprob ? min(settings.alternatives, row.vocab) : 0;
  double log_sum = 0.0;
  if (wants_logprob) log_sum = list_likeliest(row, cluster, found.best, alternatives, listed);
  const bool edited = row.penalizes() || Row::size(settings.bias) > 0;
  if (edited) edit(row);
  Candidate top = row.is_masked() ? masked.best : found.best;
  if (edited || row.choices() != row.vocab) top = next_best(row, cluster, before_all(), false);
  SampleHead result = {.token = top.token, .alternatives = listed};
  if (top.value == -INFINITY) {
    result = {.token = -1, .outcome = SampleOutcome::nothing_left, .alternatives = listed};
  } else if (settings.temperature > 0.0f && top.value != INFINITY) {
    result.token = Draw(row, cluster, top, one).choose();
  }
  if (result.token >= 0 && wants_logprob && cluster.is_leader()) {
    result.logprob = static_cast<float>(static_cast<double>(original(row, result.token)) - log_sum);
  }
  return result;
}

template <bool clusters>
__global__ void __launch_bounds__(sample_threads) sample_kernel(const SampleCall call) {
  __shared__ RowCluster::Smem smem;
  RowCluster cluster(smem, clusters ? static_cast<int>(gridDim.y) : 1, static_cast<int>(blockIdx.y));
  if (clusters) cluster_arrive();  // no remote store before the target block has started
  wait_for_previous();
  let_next_start();
  if (clusters) cluster_wait();
  float* scratch = call.scratch + sample_floats(call.vocab) * blockIdx.x;
  for (int r = static_cast<int>(blockIdx.x); r < call.count; r += static_cast<int>(gridDim.x)) {
    const int mask = call.rows[r].mask;
    Row row = {.settings = call.rows[r],
               .lists = call.lists,
               .mask = mask < 0 ? nullptr : call.masks + std::int64_t{mask} * call.mask_cols,
               .logits = call.logits + std::int64_t{r} * call.vocab,
               .vocab = call.vocab,
               .weights = scratch,
               .keys = scratch + call.vocab,
               .saved = scratch + 3 * std::int64_t{call.vocab},
               .tokens = reinterpret_cast<std::int32_t*>(scratch + 2 * std::int64_t{call.vocab}),
               .here = part_of(call.vocab, cluster.blocks(), cluster.rank()),
               .choices_here = {}};
    row.choices_here =
        row.choices() == call.vocab ? row.here : Range{0, cluster.rank() == 0 ? row.choices() : 0};
    std::byte* out = call.out + std::int64_t{r} * call.out_cols * 4;
    const SampleHead head =
        sample_row(row, cluster, reinterpret_cast<ListEntry*>(out + sizeof(SampleHead)), call.one);
    if (cluster.is_leader()) {
      *reinterpret_cast<SampleHead*>(out) = head;
      if (call.tokens != nullptr) call.tokens[r] = max(head.token, 0);
    }
    cluster.sync();
  }
}

// The unit of Mass: weights are at most one, and there are as many as tokens.
float one_for(int vocab) {
  const int bits = 62 - static_cast<int>(std::bit_width(static_cast<unsigned>(vocab)));
  return static_cast<float>(std::uint64_t{1} << bits);
}

}  // namespace

void sample(const Queue& queue, Matrix out, Matrix logits, const SamplingInputs& inputs, float* scratch) {
  const SampleCall call = {.out = out.data,
                           .logits = reinterpret_cast<float*>(logits.data),
                           .rows = reinterpret_cast<const SamplingRow*>(inputs.rows.data),
                           .lists = reinterpret_cast<const ListEntry*>(inputs.lists.data),
                           .masks = reinterpret_cast<const std::uint32_t*>(inputs.masks.data),
                           .tokens = reinterpret_cast<std::int32_t*>(inputs.tokens.data),
                           .scratch = scratch,
                           .count = logits.rows,
                           .vocab = logits.cols,
                           .mask_cols = inputs.masks.cols,
                           .out_cols = out.cols,
                           .one = one_for(logits.cols)};
  const auto rows = static_cast<unsigned>(std::min(logits.rows, sample_rows_at_once));
  const auto cluster = static_cast<unsigned>(std::min(sample_max_blocks, queue.max_cluster));
  if (cluster > 1) {
    return launch(queue, {.grid = dim3(rows, cluster), .threads = sample_threads, .cluster = cluster},
                  sample_kernel<true>, call);
  }
  launch(queue, {.grid = dim3(rows), .threads = sample_threads}, sample_kernel<false>, call);
}

}  // namespace inferno::cuda
