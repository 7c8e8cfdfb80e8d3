// Inputs and results of sampling a row of logits. Plain numbers only: both are in backend memory at addresses
// that never change, so that a recorded graph can sample too.
//
// The meaning, step by step, for a row of logits l:
//  1. A value of l that is not finite: outcome `not_finite`, and nothing else is done.
//  2. Log probabilities are those of the model itself, before the steps below: l - log(sum(exp(l))).
//  3. Tokens of `history`: l = l > 0 ? l / repetition : l * repetition; then l -= presence, once, and
//     l -= frequency * count for tokens whose count in the answer is not 0.
//  4. Tokens of `bias`: l += value (minus infinity bans). `allowed`, unless empty: no other token remains.
//     `mask`, unless -1: only tokens whose bit is set in that row of `masks` remain.
//     Nothing left: outcome `nothing_left`.
//  5. temperature 0: the largest l, the lowest token if several are equal. Done.
//  6. p = softmax(l / temperature), then each of these keeps a part and renormalizes it, in this order:
//     top_k (the k largest), top_p (the fewest of the largest whose sum reaches top_p), min_p (those of at
//     least min_p times the largest), typical_p (the fewest of those with -log p nearest to the entropy
//     whose sum reaches typical_p). If values are equal, the lower token goes first.
//  7. u = uniform_at(seed, position), base/counter_random.h; the first token, in order of token id, at which
//     the running sum of p exceeds u.
// Sums may be taken in any order and in float, but the order for a row must not depend on the other rows.
#pragma once

#include <cstdint>

#include "tensor/matrix.h"

namespace inferno {

// Part of SamplingInputs::lists.
struct ListRange {
  std::int32_t begin = 0, end = 0;
};

struct SamplingRow {
  float temperature = 0.0f;
  std::int32_t top_k = 0;  // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  float typical_p = 1.0f;
  float repetition = 1.0f, presence = 0.0f, frequency = 0.0f;
  std::uint32_t seed_low = 0, seed_high = 0;
  std::int32_t position = 0;
  std::int32_t alternatives =
      -1;                  // log probabilities wanted: -1 none, 0 the token's own, N of the N likeliest
  ListRange history = {};  // tokens of prompt and answer; value: how often in the answer
  ListRange bias = {};     // value: what is added
  ListRange allowed = {};  // empty: every token; value: nothing
  std::int32_t mask = -1;  // row of SamplingInputs::masks; -1: every token, and no mask is read
};
static_assert(sizeof(SamplingRow) == 76);

struct ListEntry {
  std::int32_t token = 0;
  float value = 0.0f;
};
static_assert(sizeof(ListEntry) == 8);

struct SamplingInputs {
  Matrix rows;   // i32 [rows, 19]: one SamplingRow for each row of logits
  Matrix lists;  // i32 [entries, 2]: ListEntry; the tokens of one range are distinct and ascending
  // i32 [rows, 1]: receives a copy of the sampled tokens for the next step to read, 0 for a row without one.
  // May be empty.
  Matrix tokens = {};
  // i32 [masks, mask_words(vocab)]: bit t % 32 of word t / 32 says whether token t may be drawn. Bits past
  // the vocabulary mean nothing. Empty if no row has a mask.
  Matrix masks = {};
};

constexpr std::int32_t mask_words(std::int32_t vocab) {
  return (vocab + 31) / 32;
}

enum class SampleOutcome : std::int32_t { token = 0, not_finite = 1, nothing_left = 2 };

struct SampleHead {
  std::int32_t token = 0;  // -1 unless the outcome is a token
  float logprob = 0.0f;    // 0 when alternatives was -1
  SampleOutcome outcome = SampleOutcome::token;
  std::int32_t alternatives = 0;  // how many follow
};
static_assert(sizeof(SampleHead) == 16);

// One row of results: a SampleHead, then ListEntry (token, log probability), likeliest first.
constexpr std::int32_t sample_columns(std::int32_t max_alternatives) {
  return static_cast<std::int32_t>(sizeof(SampleHead) / 4) + 2 * max_alternatives;
}

}  // namespace inferno
