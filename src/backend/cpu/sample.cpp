// Samples tokens as backend/sampling.h defines it. The vocabulary is never sorted: only the likeliest tokens
// that the settings can reach are gathered, and only those that are kept are ordered.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "backend/cpu/operations.h"
#include "base/counter_random.h"

namespace inferno::cpu {
namespace {

constexpr float nowhere = -std::numeric_limits<float>::infinity();

struct Candidate {
  float weight = 0.0f;  // exp((l - largest) / temperature)
  std::int32_t token = 0;
};
using Candidates = std::span<Candidate>;

bool likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double mass(std::span<const Candidate> candidates) {
  double sum = 0.0;
  for (const Candidate& c : candidates) sum += static_cast<double>(c.weight);
  return sum;
}

// Sixteen lanes, so that the compiler vectorizes.
bool all_finite(const float* logits, int count) {
  float sums[16] = {};
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int lane = 0; lane < 16; ++lane) sums[lane] += 0.0f * logits[i + lane];  // NaN unless finite
  }
  for (; i < count; ++i) sums[0] += 0.0f * logits[i];
  float total = 0.0f;
  for (const float sum : sums) total += sum;
  return total == 0.0f;
}

float largest(const float* logits, int count) {
  float tops[16];
  std::fill_n(tops, 16, nowhere);
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int lane = 0; lane < 16; ++lane) tops[lane] = std::max(tops[lane], logits[i + lane]);
  }
  for (; i < count; ++i) tops[0] = std::max(tops[0], logits[i]);
  return *std::max_element(tops, tops + 16);
}

// e^x for x <= 0 to about 1e-7, without branches, so that the compiler vectorizes loops over it.
inline float exponential(float x) {
  constexpr float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  x = std::max(x, -87.0f);
  const float shifted = x * 1.44269504088896341f + rounder;
  const float whole = shifted - rounder;
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounder);
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + power * (1 << 23));
}

constexpr int chunk = 64;  // tokens whose exponentials are taken at once

// weights[i] = e^((logits[i] - top) * scale)
void exponentials(float* weights, const float* logits, int count, float top, float scale) {
  for (int i = 0; i < count; ++i) weights[i] = exponential((logits[i] - top) * scale);
}

double log_of_sum(const float* logits, int count, float top) {
  double sum = 0.0;
  float weights[chunk];
  for (int first = 0; first < count; first += chunk) {
    const int some = std::min(chunk, count - first);
    exponentials(weights, logits + first, some, top, 1.0f);
    for (int i = 0; i < some; ++i) sum += static_cast<double>(weights[i]);
  }
  return static_cast<double>(top) + std::log(sum);
}

// The likeliest `wanted` tokens in order, by insertion: `wanted` is small and most tokens fail the first
// test.
int find_likeliest(ListEntry* found, int wanted, const float* logits, int count) {
  int size = 0;
  for (int token = 0; token < count; ++token) {
    const float value = logits[token];
    if (size == wanted && (wanted == 0 || value <= found[size - 1].value)) continue;
    int at = size < wanted ? size++ : size - 1;
    for (; at > 0 && found[at - 1].value < value; --at) found[at] = found[at - 1];
    found[at] = {token, value};
  }
  return size;
}

// The lists and the mask that a SamplingRow refers to.
struct RowLimits {
  const ListEntry* lists = nullptr;
  const std::uint32_t* mask = nullptr;  // null: every token
};

class RowSampler {
 public:
  // `memory` has room for a Candidate for every token.
  RowSampler(float* logits, int vocab, const SamplingRow& row, const RowLimits& limits, float* memory)
      : logits_(logits),
        vocab_(vocab),
        row_(row),
        lists_(limits.lists),
        mask_(limits.mask),
        memory_(reinterpret_cast<Candidate*>(memory)) {}

  // alternatives: row.alternatives entries after the head.
  SampleHead run(ListEntry* alternatives) {
    SampleHead head = {.token = -1};
    if (!all_finite(logits_, vocab_)) {
      head.outcome = SampleOutcome::not_finite;
      return head;
    }
    double log_sum = 0.0;
    if (row_.alternatives >= 0) {
      log_sum = log_of_sum(logits_, vocab_, largest(logits_, vocab_));
      head.alternatives = find_likeliest(alternatives, std::min(row_.alternatives, vocab_), logits_, vocab_);
      for (int i = 0; i < head.alternatives; ++i) {
        alternatives[i].value = static_cast<float>(static_cast<double>(alternatives[i].value) - log_sum);
      }
    }
    // The token's own log probability is that of the model, so its logit is needed from before the edits.
    const std::span<const ListEntry> history = entries(row_.history), bias = entries(row_.bias);
    const bool edits = penalizes(history) || !bias.empty();
    const bool logprob = row_.alternatives >= 0;
    if (logprob && edits) remember(history, bias);
    if (edits) edit(history, bias);
    head.token = choose();
    if (head.token < 0) {
      head.outcome = SampleOutcome::nothing_left;
    } else if (logprob) {
      head.logprob = static_cast<float>(static_cast<double>(original(head.token)) - log_sum);
    }
    return head;
  }

 private:
  std::span<const ListEntry> entries(const ListRange& range) const {
    return {lists_ + range.begin, lists_ + range.end};
  }
  bool penalizes(std::span<const ListEntry> history) const {
    return !history.empty() && (row_.repetition != 1.0f || row_.presence != 0.0f || row_.frequency != 0.0f);
  }

  // The logits that edit() changes, stored at the end of the memory until candidates are gathered.
  void remember(std::span<const ListEntry> history, std::span<const ListEntry> bias) {
    for (const auto list : {history, bias}) {
      for (const ListEntry& entry : list) kept_.push_back({logits_[entry.token], entry.token});
    }
    std::sort(kept_.begin(), kept_.end(),
              [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  }
  float original(std::int32_t token) const {
    const auto at = std::lower_bound(kept_.begin(), kept_.end(), token,
                                     [](const Candidate& a, std::int32_t t) { return a.token < t; });
    return at != kept_.end() && at->token == token ? at->weight : logits_[token];
  }

  void edit(std::span<const ListEntry> history, std::span<const ListEntry> bias) {
    if (penalizes(history)) {
      for (const ListEntry& entry : history) {
        float& l = logits_[entry.token];
        l = l > 0.0f ? l / row_.repetition : l * row_.repetition;
        if (entry.value > 0.0f) l -= row_.presence + row_.frequency * entry.value;
      }
    }
    for (const ListEntry& entry : bias) logits_[entry.token] += entry.value;
  }

  bool is_in_mask(std::int32_t token) const {
    return mask_ == nullptr || (mask_[token / 32] >> (token % 32) & 1u) != 0;
  }

  // Visits every token that may be drawn.
  template <class Visit>
  void each_allowed(const Visit& visit) const {
    const std::span<const ListEntry> allowed = entries(row_.allowed);
    for (const ListEntry& entry : allowed) {
      if (is_in_mask(entry.token)) visit(entry.token, logits_[entry.token]);
    }
    if (!allowed.empty()) return;
    if (mask_ != nullptr) return each_in_mask(visit);
    for (int token = 0; token < vocab_; ++token) visit(token, logits_[token]);
  }
  template <class Visit>
  void each_in_mask(const Visit& visit) const {
    for (int word = 0; word < mask_words(vocab_); ++word) {
      for (std::uint32_t bits = mask_[word]; bits != 0; bits &= bits - 1) {
        const int token = 32 * word + std::countr_zero(bits);
        if (token < vocab_) visit(token, logits_[token]);
      }
    }
  }

  float largest_allowed() const {
    if (row_.allowed.begin == row_.allowed.end && mask_ == nullptr) return largest(logits_, vocab_);
    float top = nowhere;
    each_allowed([&](std::int32_t, float l) { top = std::max(top, l); });
    return top;
  }

  std::int32_t choose() {
    const float top = largest_allowed();
    if (!(top > nowhere)) return -1;
    if (row_.temperature <= 0.0f || top == std::numeric_limits<float>::infinity()) return first_of(top);
    Candidates kept = gather(top);
    if (row_.top_k > 0 && static_cast<std::size_t>(row_.top_k) < kept.size()) kept = keep_k(kept);
    if (row_.top_p < 1.0f) kept = keep_mass(kept, static_cast<double>(row_.top_p) * total_, likelier);
    if (row_.min_p > 0.0f) kept = keep_min_p(kept);
    if (row_.typical_p < 1.0f) kept = keep_typical(kept);
    return draw(kept);
  }

  std::int32_t first_of(float value) const {
    std::int32_t found = -1;
    each_allowed([&](std::int32_t token, float l) {
      if (found < 0 && l == value) found = token;
    });
    return found;
  }

  // The candidates the settings can reach, in order of token, and the mass that top_p is a share of. Beyond
  // e^-40 of the likeliest a token's share is lost in the rounding of any sum.
  Candidates gather(float top) {
    constexpr float farthest = 40.0f;
    const float scale = 1.0f / row_.temperature;
    float reach = farthest;
    const bool share_of_all = row_.top_p < 1.0f;
    if (row_.min_p > 0.0f && !share_of_all) reach = std::min(reach, -std::log(row_.min_p) + 0.01f);
    if (row_.top_k > 0) reach = reach_of_k(top, scale, reach);
    const float least = std::exp(-reach);
    std::size_t size = 0;
    const std::span<const ListEntry> allowed = entries(row_.allowed);
    for (const ListEntry& entry : allowed) {
      if (!is_in_mask(entry.token)) continue;
      const float weight = exponential((logits_[entry.token] - top) * scale);
      if (weight >= least) memory_[size++] = {weight, entry.token};
    }
    float weights[chunk], unmasked[chunk];
    for (int first = 0; allowed.empty() && first < vocab_; first += chunk) {
      const int some = std::min(chunk, vocab_ - first);
      if (is_chunk_masked(first, some)) continue;
      exponentials(weights, mask_ == nullptr ? logits_ + first : masked(unmasked, first, some), some, top,
                   scale);
      for (int i = 0; i < some; ++i) {
        if (weights[i] >= least) memory_[size++] = {weights[i], first + i};
      }
    }
    const Candidates all(memory_, size);
    total_ = mass(all);
    return all;
  }

  bool is_chunk_masked(int first, int count) const {
    static_assert(chunk % 32 == 0);
    if (mask_ == nullptr) return false;
    const std::uint32_t* words = mask_ + first / 32;
    return std::all_of(words, words + mask_words(count), [](std::uint32_t word) { return word == 0; });
  }

  // The logits of a chunk, minus infinity for tokens that the mask forbids: those may be larger than the
  // largest allowed one, which exponential() does not expect.
  const float* masked(float* out, int first, int count) const {
    for (int i = 0; i < count; ++i) out[i] = is_in_mask(first + i) ? logits_[first + i] : nowhere;
    return out;
  }

  // The smallest of a few distances within which there are k tokens, or `reach`.
  float reach_of_k(float top, float scale, float reach) const {
    for (float distance = 2.5f; distance < reach; distance *= 2.0f) {
      int within = 0;
      const float least = top - distance / scale;
      each_allowed([&](std::int32_t, float l) { within += l >= least ? 1 : 0; });
      // A little more, so that rounding cannot lose one of the k.
      if (within >= row_.top_k) return std::min(reach, distance + 0.01f);
    }
    return reach;
  }

  Candidates keep_k(Candidates from) {
    const auto k = static_cast<std::ptrdiff_t>(row_.top_k);
    std::nth_element(from.begin(), from.begin() + k - 1, from.end(), likelier);
    const Candidates kept = from.first(static_cast<std::size_t>(k));
    total_ = mass(kept);
    return kept;
  }

  // The fewest of the first, in the order `before`, whose mass reaches `target`: quickselect by mass, which
  // sorts nothing but the last few.
  template <class Before>
  Candidates keep_mass(Candidates from, double target, const Before& before) {
    std::size_t low = 0, high = from.size();  // the border is in between
    double sum = 0.0;                         // of those before `low`
    while (high - low > 32) {
      const std::size_t middle = low + (high - low) / 2;
      const Candidates part = from.subspan(low, high - low);
      std::nth_element(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(middle - low), part.end(),
                       before);
      const double left = mass(from.subspan(low, middle - low));
      if (sum + left >= target) {
        high = middle;
      } else {
        sum += left;
        low = middle;
      }
    }
    const Candidates part = from.subspan(low, high - low);
    std::sort(part.begin(), part.end(), before);
    while (low < high && sum < target) sum += static_cast<double>(from[low++].weight);
    const Candidates kept = from.first(std::max<std::size_t>(1, low));
    total_ = mass(kept);
    return kept;
  }

  Candidates keep_min_p(Candidates from) {
    float top = 0.0f;
    for (const Candidate& c : from) top = std::max(top, c.weight);
    const float least = row_.min_p * top;
    const auto end =
        std::partition(from.begin(), from.end(), [least](const Candidate& c) { return c.weight >= least; });
    const Candidates kept = from.first(static_cast<std::size_t>(end - from.begin()));
    total_ = mass(kept);
    return kept;
  }

  Candidates keep_typical(Candidates from) {
    // Partitions leave an order that depends on how the library selects: sums begin from a defined one.
    sort_by_token(from);
    double entropy = 0.0;
    for (const Candidate& c : from) {
      const double p = static_cast<double>(c.weight) / total_;
      if (p > 0.0) entropy -= p * std::log(p);
    }
    const auto surprise = [this, entropy](const Candidate& c) {
      return std::abs(-std::log(static_cast<double>(c.weight) / total_) - entropy);
    };
    return keep_mass(from, static_cast<double>(row_.typical_p) * total_,
                     [&](const Candidate& a, const Candidate& b) {
                       const double x = surprise(a), y = surprise(b);
                       return x != y ? x < y : a.token < b.token;
                     });
  }

  static void sort_by_token(Candidates candidates) {
    const auto by_token = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
    if (!std::is_sorted(candidates.begin(), candidates.end(), by_token)) {
      std::sort(candidates.begin(), candidates.end(), by_token);
    }
  }

  std::int32_t draw(Candidates from) const {
    sort_by_token(from);
    const std::uint64_t seed = std::uint64_t{row_.seed_high} << 32 | row_.seed_low;
    const double target = uniform_at(seed, static_cast<std::uint32_t>(row_.position)) * mass(from);
    double sum = 0.0;
    for (const Candidate& c : from) {
      sum += static_cast<double>(c.weight);
      if (sum > target) return c.token;
    }
    return from.back().token;
  }

  float* logits_;
  int vocab_;
  const SamplingRow& row_;
  const ListEntry* lists_;
  const std::uint32_t* mask_;
  Candidate* memory_;
  double total_ = 0.0;
  std::vector<Candidate> kept_;
};

}  // namespace

void sample(const Compute& compute, Matrix out, Matrix logits, const SamplingInputs& inputs) {
  const auto* rows = reinterpret_cast<const SamplingRow*>(inputs.rows.data);
  const auto* lists = reinterpret_cast<const ListEntry*>(inputs.lists.data);
  const auto* masks = reinterpret_cast<const std::uint32_t*>(inputs.masks.data);
  auto* tokens = reinterpret_cast<std::int32_t*>(inputs.tokens.data);
  compute.pool.parallel_for(logits.rows, 1, [&](const auto& range) {
    float* memory = compute.scratch.own(range.worker, 2 * static_cast<std::size_t>(logits.cols));
    for (auto r = range.begin; r < range.end; ++r) {
      std::byte* to = out.data + static_cast<std::size_t>(r) * static_cast<std::size_t>(out.cols) * 4;
      const std::uint32_t* mask =
          rows[r].mask < 0 ? nullptr : masks + std::int64_t{rows[r].mask} * inputs.masks.cols;
      RowSampler sampler(floats(logits, r), logits.cols, rows[r], {lists, mask}, memory);
      auto* alternatives = reinterpret_cast<ListEntry*>(to + sizeof(SampleHead));
      const SampleHead head = sampler.run(alternatives);
      *reinterpret_cast<SampleHead*>(to) = head;
      if (tokens != nullptr) tokens[r] = std::max(head.token, 0);
    }
  });
}

}  // namespace inferno::cpu
