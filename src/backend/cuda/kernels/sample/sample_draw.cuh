// The draw. top_k, top_p and min_p each keep a prefix of the order (weight, then token), described by its
// last member, which a radix search finds three bits of the weight at a time. Nothing is sorted. Only tokens
// that the settings can reach are gathered and visited more than a few times. Weights are added as integers:
// the sum does not depend on the order.
#pragma once

#include "backend/cuda/kernels/sample/sample_cluster.cuh"
#include "base/counter_random.h"

namespace inferno::cuda {

using Mass = unsigned long long;

struct Candidate {
  float value;
  std::int32_t token;
};
__device__ inline bool comes_first(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}
__device__ inline Candidate before_all() {
  return {INFINITY, -1};
}

// The next token after `last` in the order of values, then token numbers, among those that may be drawn.
__device__ inline Candidate next_best(const Row& row, RowCluster& cluster, const Candidate& last,
                                      bool of_all) {
  Candidate best = {-INFINITY, row.vocab};
  const Range here = of_all ? row.here : row.choices_here;
  for_each(here.size(), [&](int i) {
    const std::int32_t token = of_all ? here.begin + i : row.choice(here.begin + i);
    const Candidate candidate = {row.logits[token], token};
    if (!of_all && !row.is_in_mask(token)) return;
    if (comes_first(last, candidate) && comes_first(candidate, best)) best = candidate;
  });
  return cluster.reduce(best,
                        [](const Candidate& a, const Candidate& b) { return comes_first(a, b) ? a : b; });
}

// Sums under several conditions at once.
template <int count>
struct Masses {
  Mass of[count] = {};
  __device__ static Masses joined(const Masses& a, const Masses& b) {
    Masses out;
#pragma unroll
    for (int i = 0; i < count; ++i) out.of[i] = a.of[i] + b.of[i];
    return out;
  }
};

class Draw {
 public:
  // `one`: the Mass of a weight of one. No row's sum overflows.
  __device__ Draw(const Row& row, RowCluster& cluster, const Candidate& top, float one)
      : row_(row), cluster_(cluster), top_(top), scale_(1.0f / row.settings.temperature), one_(one) {}

  __device__ std::int32_t choose() {
    const SamplingRow& s = row_.settings;
    if (s.top_k == 0 && s.top_p >= 1.0f && s.min_p == 0.0f && s.typical_p >= 1.0f) return draw_of_all();
    gather(reach());
    kept_.index = all_;
    const auto weight = [&](int i) { return mass_of(weight_at(i)); };
    if (s.top_k > 0 && s.top_k < all_) {
      keep([](int) { return Mass{1}; }, static_cast<Mass>(s.top_k));
    }
    if (s.top_p < 1.0f) {
      const double all = static_cast<double>(s.top_k > 0 ? sum_of(weight) : total_);
      keep(weight, static_cast<Mass>(fmax(1.0, ceil(static_cast<double>(s.top_p) * all))));
    }
    if (s.min_p > kept_.weight) kept_ = {.weight = s.min_p, .index = all_};
    if (s.typical_p < 1.0f) keep_typical();
    const Found found = find_kept(weight, [&](Mass all) { return place_in(all); });
    return found.index >= 0 ? found.token : top_.token;
  }

 private:
  // The kept candidates: those up to (weight, index) in the order of weights and, with a second bound, those
  // up to (key, key_index) in the order of keys.
  struct Kept {
    float weight = 0.0f;
    int index = 0;  // among candidates of exactly this weight, the last one kept
    float key = INFINITY;
    int key_index = 0;
  };
  struct Found {
    std::int32_t index, token;
  };

  __device__ float weight_of(std::int32_t token) const {
    return expf((row_.logits[token] - top_.value) * scale_);
  }
  __device__ Mass mass_of(float weight) const { return __float2ull_rn(weight * one_); }
  __device__ float weight_at(int i) const { return row_.weights[row_.choices_here.begin + i]; }
  __device__ float& key_at(int i) const { return row_.keys[row_.choices_here.begin + i]; }

  // The position of the draw in the running sum of all masses.
  __device__ Mass place_in(Mass all) const {
    const SamplingRow& s = row_.settings;
    const std::uint64_t seed = std::uint64_t{s.seed_high} << 32 | s.seed_low;
    const double at = uniform_at(seed, static_cast<std::uint32_t>(s.position)) * static_cast<double>(all);
    return all == 0 ? 0 : min(static_cast<Mass>(at), all - 1);
  }

  // If no setting excludes a token, nothing is gathered.
  __device__ std::int32_t draw_of_all() {
    const int first = row_.choices_here.begin;
    const auto token = [&](int i) { return row_.choice(first + i); };
    const auto mass = [&](int i) { return row_.is_in_mask(token(i)) ? mass_of(weight_of(token(i))) : 0; };
    return find(row_.choices_here.size(), mass, token, [&](Mass all) { return place_in(all); }).token;
  }

  // How far below the most likely token the settings can reach, in units of the temperature. Beyond 40 a
  // token's probability is lost in the rounding of any sum.
  __device__ float reach() {
    constexpr int steps = 4;
    constexpr float farthest = 40.0f;
    const SamplingRow& s = row_.settings;
    const bool by_count = s.top_k > 0;
    if (!by_count && s.top_p >= 1.0f) {
      return s.min_p > 0.0f ? fminf(farthest, 0.01f - logf(s.min_p)) : farthest;
    }
    Masses<steps + 1> found;  // masses within each distance; the last: of all
    for_each(row_.choices_here.size(), [&](int i) {
      const std::int32_t token = row_.choice(row_.choices_here.begin + i);
      if (!row_.is_in_mask(token)) return;
      const float distance = (top_.value - row_.logits[token]) * scale_;
      const Mass mass = by_count ? 1 : mass_of(weight_of(token));
      found.of[steps] += mass;
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        if (distance <= 2.5f * static_cast<float>(1 << j)) found.of[j] += mass;
      }
    });
    found = cluster_.reduce(found, Masses<steps + 1>::joined);
    total_ = found.of[steps];
    const double wanted = by_count
                              ? static_cast<double>(s.top_k)
                              : static_cast<double>(s.top_p) * static_cast<double>(total_) * (1.0 + 1e-6);
    for (int j = 0; j < steps; ++j) {
      // A small margin, so that rounding cannot lose a token.
      if (static_cast<double>(found.of[j]) >= wanted) return 2.5f * static_cast<float>(1 << j) + 0.01f;
    }
    return farthest;
  }

  // Gathers the candidates in token order: warp by warp, block by block.
  __device__ void gather(float reach) {
    const int first = row_.choices_here.begin, lane = lane_id();
    const Range own = part_of(row_.choices_here.size(), sample_warps, warp_id());
    const auto token_at = [&](int i) { return i < own.end ? row_.choice(first + i) : -1; };
    const auto is_near = [&](std::int32_t token) {
      return token >= 0 && (top_.value - row_.logits[token]) * scale_ <= reach && row_.is_in_mask(token);
    };
    int count = 0;
    for (int i = own.begin; i < own.end; i += 32) {
      count += __popc(__ballot_sync(full_warp, is_near(token_at(i + lane))));
    }
    int at = first + exclusive_warp_sum(count, size_);
    for (int i = own.begin; i < own.end; i += 32) {
      const std::int32_t token = token_at(i + lane);
      const unsigned votes = __ballot_sync(full_warp, is_near(token));
      if (is_near(token)) {
        const int place = at + __popc(votes & ((1u << lane) - 1u));
        row_.tokens[place] = token;
        row_.weights[place] = weight_of(token);
      }
      at += __popc(votes);
    }
    const int* sizes = cluster_.all_gather(size_);  // also makes the gathered tokens visible to the block
    for (int rank = 0; rank < cluster_.blocks(); ++rank) {
      const int size = cluster_.value_of(rank, sizes);
      ahead_ += rank < cluster_.rank() ? size : 0;
      all_ += size;
    }
  }

  __device__ bool is_kept(int i) const {
    const float weight = weight_at(i);
    if (weight < kept_.weight || (weight == kept_.weight && ahead_ + i > kept_.index)) return false;
    if (kept_.key == INFINITY) return true;
    const float key = key_at(i);
    return key < kept_.key || (key == kept_.key && ahead_ + i <= kept_.key_index);
  }

  // The sum of measure(i) over the kept candidates.
  template <class Measure>
  __device__ Mass sum_of(const Measure& measure) {
    Masses<1> sum;
    for_each(size_, [&](int i) { sum.of[0] += is_kept(i) ? measure(i) : 0; });
    return cluster_.reduce(sum, Masses<1>::joined).of[0];
  }

  // Among the members of all blocks in token order (`size` in this one): the first at which the running sum
  // of mass(i) exceeds limit(total); -1 if none does.
  template <class MassAt, class TokenAt, class Limit>
  __device__ Found find(int size, const MassAt& mass, const TokenAt& token, const Limit& limit_of) {
    const Range own = part_of(size, sample_warps, warp_id());
    const auto add = [](Mass a, Mass b) { return a + b; };
    Mass sum = 0, here = 0;
#pragma unroll 4
    for (int i = own.begin + lane_id(); i < own.end; i += 32) sum += mass(i);
    sum = warp_reduce(sum, add);
    Mass before = exclusive_warp_sum(sum, here), all = 0;
    const Mass* values = cluster_.all_gather(here);
    for (int rank = 0; rank < cluster_.blocks(); ++rank) {
      before += rank < cluster_.rank() ? cluster_.value_of(rank, values) : 0;
      all += cluster_.value_of(rank, values);
    }
    const Mass limit = limit_of(all);
    Found found = {-1, -1};
    if (before <= limit && limit - before < sum) {
      const int at = walk(own, mass, before, limit);
      found = {ahead_ + at, token(at)};
    }
    return cluster_.reduce(found, [](const Found& a, const Found& b) { return a.index >= 0 ? a : b; });
  }
  // The member that find() looks for, known to be in this warp's range.
  template <class MassAt>
  __device__ int walk(const Range& own, const MassAt& mass, Mass before, Mass limit) const {
    const int lane = lane_id();
    for (int first = own.begin; first < own.end; first += 32) {
      const int i = first + lane;
      Mass running = i < own.end ? mass(i) : 0;
      for (int offset = 1; offset < 32; offset <<= 1) {
        const Mass other = __shfl_up_sync(full_warp, running, offset);
        if (lane >= offset) running += other;
      }
      running += before;
      const unsigned passed = __ballot_sync(full_warp, running > limit);
      if (passed != 0) return first + __ffs(static_cast<int>(passed)) - 1;
      before = __shfl_sync(full_warp, running, 31);
    }
    return own.end - 1;
  }
  template <class Measure, class Limit>
  __device__ Found find_kept(const Measure& measure, const Limit& limit_of) {
    return find(
        size_, [&](int i) { return is_kept(i) ? measure(i) : 0; },
        [&](int i) { return row_.tokens[row_.choices_here.begin + i]; }, limit_of);
  }

  // The largest 31-bit number for which `holds(number, sum)` is true, where sum adds measure(i) over the
  // candidates with `counts(i, number)`. It must hold for all smaller numbers. Three bits per pass.
  template <class Measure, class Counts, class Holds>
  __device__ std::uint32_t largest(const Measure& measure, const Counts& counts, const Holds& holds) {
    constexpr int digits = 7;
    std::uint32_t bits = 0;
    for (int low = 28; low >= -2; low -= 3) {
      const int shift = max(low, 0), max_digit = low < 0 ? 1 : digits;
      Masses<digits> sums;
      for_each(size_, [&](int i) {
        const Mass mass = is_kept(i) ? measure(i) : 0;
#pragma unroll
        for (int j = 0; j < digits; ++j) {
          if (counts(i, bits + (static_cast<std::uint32_t>(j + 1) << shift))) sums.of[j] += mass;
        }
      });
      sums = cluster_.reduce(sums, Masses<digits>::joined);
      int digit = 0;
#pragma unroll
      for (int j = 0; j < digits; ++j) {
        const std::uint32_t number = bits + (static_cast<std::uint32_t>(j + 1) << shift);
        if (j < max_digit && digit == j && holds(number, sums.of[j])) ++digit;
      }
      bits += static_cast<std::uint32_t>(digit) << shift;
    }
    return bits;
  }

  // Shortens the kept prefix to the fewest heaviest candidates whose measures reach the target.
  template <class Measure>
  __device__ void keep(const Measure& measure, Mass target) {
    const std::uint32_t bits = largest(
        measure, [&](int i, std::uint32_t number) { return __float_as_uint(weight_at(i)) >= number; },
        [&](std::uint32_t, Mass sum) { return sum >= target; });
    const float border = __uint_as_float(bits);
    const Mass above = sum_of([&](int i) { return weight_at(i) > border ? measure(i) : 0; });
    const Found last = find_kept([&](int i) { return weight_at(i) == border ? measure(i) : 0; },
                                 [&](Mass) { return target - above - 1; });
    kept_.weight = border;
    kept_.index = last.index >= 0 ? last.index : all_;
  }

  // Keeps the fewest candidates nearest to the entropy.
  __device__ void keep_typical() {
    const auto weight = [&](int i) { return mass_of(weight_at(i)); };
    const Mass mass = sum_of(weight);
    const double all = static_cast<double>(mass) / static_cast<double>(one_);
    double entropy = 0.0;
    for_each(size_, [&](int i) {
      const double p = static_cast<double>(weight_at(i)) / all;
      if (is_kept(i) && p > 0.0) entropy -= p * log(p);
    });
    entropy = cluster_.sum(entropy);
    for_each(size_, [&](int i) {
      key_at(i) = static_cast<float>(fabs(-log(static_cast<double>(weight_at(i)) / all) - entropy));
    });
    __syncthreads();
    const double share = static_cast<double>(row_.settings.typical_p) * static_cast<double>(mass);
    const auto target = static_cast<Mass>(fmax(1.0, ceil(share)));
    const std::uint32_t bits = largest(
        weight, [&](int i, std::uint32_t number) { return __float_as_uint(key_at(i)) < number; },
        [&](std::uint32_t number, Mass sum) { return number < 0x7F800000u && sum < target; });
    const float border = __uint_as_float(bits);
    const Mass below = sum_of([&](int i) { return key_at(i) < border ? weight(i) : 0; });
    const Found last = find_kept([&](int i) { return key_at(i) == border ? weight(i) : 0; },
                                 [&](Mass) { return target - below - 1; });
    kept_.key = border;
    kept_.key_index = last.index >= 0 ? last.index : all_;
  }

  const Row& row_;
  RowCluster& cluster_;
  const Candidate top_;
  const float scale_, one_;
  int size_ = 0, ahead_ = 0, all_ = 0;  // candidates of this block, of earlier blocks, of all blocks
  Mass total_ = 0;
  Kept kept_;
};

}  // namespace inferno::cuda
