// Drawing tokens as backend/sampling.h defines it: one block for each row, so that a row's sums are taken in
// one order whoever shares the step. Nothing is sorted. top_k, top_p and min_p all keep a beginning of the
// order (weight, then token), so what is kept is described by its last member, which is found by bisection
// over the bits of the weight. Only tokens that the settings can reach are gathered and looked at more than a
// few times.
#include "backend/cuda/device/block_reduce.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/sample_row.cuh"
#include "base/counter_random.h"

namespace inferno::cuda {
namespace {

constexpr int threads = sample_threads;

struct SampleCall {
  std::byte* out;
  float* logits;
  const SamplingRow* rows;
  const ListEntry* lists;
  float* scratch;
  int count, vocab, out_cols;
};

struct Candidate {
  float value;
  std::int32_t token;
};
__device__ bool comes_first(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

// The first token behind `last` in the order of values, then numbers, of all that may be drawn.
__device__ Candidate next_best(const Row& row, const Candidate& last, bool of_all) {
  Candidate best = {-INFINITY, row.vocab};
  each(of_all ? row.vocab : row.choices(), [&](int i) {
    const std::int32_t token = of_all ? i : row.choice(i);
    const Candidate candidate = {row.logits[token], token};
    if (comes_first(last, candidate) && comes_first(candidate, best)) best = candidate;
  });
  return block_reduce(best, [](const Candidate& a, const Candidate& b) { return comes_first(a, b) ? a : b; });
}

__device__ Candidate before_all() {
  return {INFINITY, -1};
}

// The kept candidates: those before (key, index) in the order of weights and, with a second border, those
// before (second, second_index) in the order of keys.
struct Kept {
  float weight = 0.0f;
  int index = 0;  // of those with exactly this weight, the ones up to here
  float key = INFINITY;
  int key_index = 0;
};

class Sampler {
 public:
  __device__ explicit Sampler(const Row& row) : row_(row) {}

  __device__ std::int32_t choose() {
    const Candidate top = next_best(row_, before_all(), false);
    if (top.value == -INFINITY) return -1;
    const SamplingRow& s = row_.settings;
    if (s.temperature <= 0.0f || top.value == INFINITY) return top.token;
    top_ = top.value;
    scale_ = 1.0f / s.temperature;
    gather(reach());
    kept_.index = size_;
    if (s.top_k > 0 && s.top_k < size_) {
      keep([](float) { return 1.0; }, static_cast<double>(s.top_k));
    }
    if (s.top_p < 1.0f) {
      const double all = s.top_k > 0 ? mass() : total_;
      keep([](float w) { return static_cast<double>(w); }, static_cast<double>(s.top_p) * all);
    }
    if (s.min_p > kept_.weight) kept_ = {.weight = s.min_p, .index = size_};
    if (s.typical_p < 1.0f) keep_typical();
    return draw();
  }

 private:
  __device__ float weight_of(std::int32_t token) const { return expf((row_.logits[token] - top_) * scale_); }

  // How far below the likeliest token the settings can reach, in units of the temperature. Beyond 40 a
  // token's share is lost in the rounding of any sum.
  __device__ float reach() {
    const SamplingRow& s = row_.settings;
    constexpr int steps = 4;
    double counts[steps] = {}, masses[steps] = {}, all = 0.0;
    each(row_.choices(), [&](int i) {
      const float distance = (top_ - row_.logits[row_.choice(i)]) * scale_;
      const double weight = static_cast<double>(expf(-distance));
      if (distance < 40.0f) all += weight;
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        if (distance <= 2.5f * static_cast<float>(1 << j)) {
          counts[j] += 1.0;
          masses[j] += weight;
        }
      }
    });
    total_ = block_sum(all);
    for (int j = 0; j < steps; ++j) {
      const double count = block_sum(counts[j]), within = block_sum(masses[j]);
      const bool enough_k = s.top_k > 0 && count >= static_cast<double>(s.top_k);
      const bool enough_p =
          s.top_k == 0 && s.top_p < 1.0f && within >= static_cast<double>(s.top_p) * total_ * (1.0 + 1e-6);
      // A little more, so that rounding cannot lose one.
      if (enough_k || enough_p) return 2.5f * static_cast<float>(1 << j) + 0.01f;
    }
    return s.min_p > 0.0f && s.top_k == 0 && s.top_p >= 1.0f ? fminf(40.0f, 0.01f - logf(s.min_p)) : 40.0f;
  }

  // The candidates in order of token: each round places those of 1024 neighbours.
  __device__ void gather(float reach) {
    size_ = 0;
    const int choices = row_.choices();
    for (int first = 0; first < choices; first += threads) {
      const int i = first + static_cast<int>(threadIdx.x);
      const std::int32_t token = i < choices ? row_.choice(i) : 0;
      const bool near = i < choices && (top_ - row_.logits[token]) * scale_ <= reach;
      int all = 0;
      const int at = size_ + place_in_block(near, all);
      if (near) {
        row_.tokens[at] = token;
        row_.weights[at] = weight_of(token);
      }
      size_ += all;
    }
    __syncthreads();
  }

  __device__ bool is_kept(int i) const {
    const float w = row_.weights[i];
    if (w < kept_.weight || (w == kept_.weight && i > kept_.index)) return false;
    if (kept_.key == INFINITY) return true;
    const float key = row_.keys[i];
    return key < kept_.key || (key == kept_.key && i <= kept_.key_index);
  }

  // The sum of measure(weight) over the kept candidates that also pass `test(i)`.
  template <class Measure, class Test>
  __device__ double sum_of(const Measure& measure, const Test& test) const {
    double sum = 0.0;
    each(size_, [&](int i) {
      if (is_kept(i) && test(i)) sum += measure(row_.weights[i]);
    });
    return block_sum(sum);
  }
  __device__ double mass() const {
    return sum_of([](float w) { return static_cast<double>(w); }, [](int) { return true; });
  }

  // The smallest index at which `sum_to(index)` passes; the last one when none does.
  template <class Passes>
  __device__ int first_index(const Passes& passes) const {
    int low = 0, high = size_ - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (passes(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // Shortens what is kept to the fewest of the heaviest whose measures reach the target.
  template <class Measure>
  __device__ void keep(const Measure& measure, double target) {
    std::uint32_t bits = 0;  // of the largest weight at and above which there is enough
    for (int bit = 30; bit >= 0; --bit) {
      const float least = __uint_as_float(bits | 1u << bit);
      if (least > 1.0f) continue;  // no weight is larger
      const double sum = sum_of(measure, [&](int i) { return row_.weights[i] >= least; });
      if (sum >= target) bits |= 1u << bit;
    }
    const float border = __uint_as_float(bits);
    const double above = sum_of(measure, [&](int i) { return row_.weights[i] > border; });
    const int index = first_index([&](int end) {
      return above + sum_of(measure, [&](int i) { return row_.weights[i] == border && i <= end; }) >= target;
    });
    kept_.weight = border;
    kept_.index = index;
  }

  // The fewest of those nearest to the entropy.
  __device__ void keep_typical() {
    const double all = mass();
    double entropy = 0.0;
    each(size_, [&](int i) {
      const double p = static_cast<double>(row_.weights[i]) / all;
      if (is_kept(i) && p > 0.0) entropy -= p * log(p);
    });
    entropy = block_sum(entropy);
    each(size_, [&](int i) {
      row_.keys[i] = static_cast<float>(fabs(-log(static_cast<double>(row_.weights[i]) / all) - entropy));
    });
    __syncthreads();
    const double target = static_cast<double>(row_.settings.typical_p) * all;
    const auto weight = [](float w) { return static_cast<double>(w); };
    std::uint32_t bits = 0;  // of the largest key below which there is not enough
    for (int bit = 30; bit >= 0; --bit) {
      const float most = __uint_as_float(bits | 1u << bit);
      if (!(most < INFINITY)) continue;
      if (sum_of(weight, [&](int i) { return row_.keys[i] < most; }) < target) bits |= 1u << bit;
    }
    const float border = __uint_as_float(bits);
    const double below = sum_of(weight, [&](int i) { return row_.keys[i] < border; });
    const int index = first_index([&](int end) {
      return below + sum_of(weight, [&](int i) { return row_.keys[i] == border && i <= end; }) >= target;
    });
    kept_.key = border;
    kept_.key_index = index;
  }

  __device__ std::int32_t draw() const {
    const SamplingRow& s = row_.settings;
    const std::uint64_t seed = std::uint64_t{s.seed_high} << 32 | s.seed_low;
    const double target = uniform_at(seed, static_cast<std::uint32_t>(s.position)) * mass();
    const auto weight = [](float w) { return static_cast<double>(w); };
    int at = first_index([&](int end) { return sum_of(weight, [&](int i) { return i <= end; }) > target; });
    while (at > 0 && !is_kept(at)) --at;  // only where rounding left nothing behind the target
    return row_.tokens[at];
  }

  const Row& row_;
  float top_ = 0.0f, scale_ = 1.0f;
  int size_ = 0;
  double total_ = 0.0;
  Kept kept_;
};

// Whether all logits are finite, and the largest: several loads in flight, because one block reads them all.
__device__ bool survey(const Row& row, Candidate& best) {
  constexpr int at_once = 8;
  bool finite = true;
  best = {-INFINITY, row.vocab};
  for (int first = static_cast<int>(threadIdx.x); first < row.vocab; first += at_once * threads) {
    float values[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int i = first + j * threads;
      values[j] = i < row.vocab ? row.logits[i] : -1e38f;
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      finite = finite && isfinite(values[j]);
      if (values[j] > best.value) best = {values[j], first + j * threads};
    }
  }
  best = block_reduce(best, [](const Candidate& a, const Candidate& b) { return comes_first(a, b) ? a : b; });
  return __syncthreads_and(finite ? 1 : 0) != 0;
}

__device__ void sample_row(const Row& row, std::byte* out) {
  auto* head = reinterpret_cast<SampleHead*>(out);
  auto* alternatives = reinterpret_cast<ListEntry*>(out + sizeof(SampleHead));
  Candidate likeliest;
  if (!survey(row, likeliest)) {
    if (threadIdx.x == 0) *head = {.token = -1, .outcome = SampleOutcome::not_finite};
    return;
  }
  const bool edited = row.penalizes() || Row::size(row.settings.bias) > 0 || row.choices() != row.vocab;
  if (row.settings.temperature <= 0.0f && !edited && row.settings.alternatives < 0) {
    if (threadIdx.x == 0) *head = {.token = min(likeliest.token, row.vocab - 1)};
    return;
  }
  const bool wants_logprob = row.settings.alternatives >= 0;
  double log_sum = 0.0;
  int listed = 0;
  if (wants_logprob) {
    Candidate best = next_best(row, before_all(), true);
    const float top = best.value;
    double sum = 0.0;
    each(row.vocab, [&](int i) { sum += static_cast<double>(expf(row.logits[i] - top)); });
    log_sum = static_cast<double>(top) + log(block_sum(sum));
    for (const int wanted = min(row.settings.alternatives, row.vocab); listed < wanted; ++listed) {
      if (listed > 0) best = next_best(row, best, true);
      if (threadIdx.x == 0) {
        alternatives[listed] = {best.token, static_cast<float>(static_cast<double>(best.value) - log_sum)};
      }
    }
  }
  __syncthreads();
  if (row.penalizes() || Row::size(row.settings.bias) > 0) edit(row);
  Sampler sampler(row);
  const std::int32_t token = sampler.choose();
  if (threadIdx.x != 0) return;
  SampleHead result = {.token = token, .alternatives = listed};
  if (token < 0) result.outcome = SampleOutcome::nothing_left;
  if (token >= 0 && wants_logprob) {
    result.logprob = static_cast<float>(static_cast<double>(original(row, token)) - log_sum);
  }
  *head = result;
}

__global__ void __launch_bounds__(threads) sample_kernel(const SampleCall call) {
  wait_for_previous();
  let_next_start();
  float* scratch = call.scratch + sample_floats(call.vocab) * blockIdx.x;
  for (int r = static_cast<int>(blockIdx.x); r < call.count; r += static_cast<int>(gridDim.x)) {
    const Row row = {.settings = call.rows[r],
                     .lists = call.lists,
                     .logits = call.logits + std::int64_t{r} * call.vocab,
                     .vocab = call.vocab,
                     .weights = scratch,
                     .keys = scratch + call.vocab,
                     .saved = scratch + 3 * std::int64_t{call.vocab},
                     .tokens = reinterpret_cast<std::int32_t*>(scratch + 2 * std::int64_t{call.vocab})};
    sample_row(row, call.out + std::int64_t{r} * call.out_cols * 4);
    __syncthreads();
  }
}

}  // namespace

void sample(const Queue& queue, Matrix out, Matrix logits, const SamplingInputs& inputs, float* scratch) {
  const SampleCall call = {.out = out.data,
                           .logits = reinterpret_cast<float*>(logits.data),
                           .rows = reinterpret_cast<const SamplingRow*>(inputs.rows.data),
                           .lists = reinterpret_cast<const ListEntry*>(inputs.lists.data),
                           .scratch = scratch,
                           .count = logits.rows,
                           .vocab = logits.cols,
                           .out_cols = out.cols};
  const unsigned blocks = static_cast<unsigned>(std::min(logits.rows, sample_rows_at_once));
  launch(queue, {.grid = dim3(blocks), .threads = threads}, sample_kernel, call);
}

}  // namespace inferno::cuda
