// A row of logits being sampled: its settings, what its threads share, and the edits that come before the
// draw.
#pragma once

#include "backend/sampling.h"

namespace inferno::cuda {

constexpr int sample_threads = 1024;

// What a row's threads share.
struct Row {
  const SamplingRow& settings;
  const ListEntry* lists;
  float* logits;
  int vocab;
  float *weights, *keys, *saved;  // scratch: of the candidates, of the candidates, of edited tokens
  std::int32_t* tokens;

  __device__ const ListEntry* begin(const ListRange& range) const { return lists + range.begin; }
  __device__ static int size(const ListRange& range) { return range.end - range.begin; }
  __device__ int choices() const {
    return settings.allowed.begin == settings.allowed.end ? vocab : size(settings.allowed);
  }
  __device__ std::int32_t choice(int i) const {
    return settings.allowed.begin == settings.allowed.end ? i : begin(settings.allowed)[i].token;
  }
  __device__ bool penalizes() const {
    return size(settings.history) > 0 &&
           (settings.repetition != 1.0f || settings.presence != 0.0f || settings.frequency != 0.0f);
  }
};

template <class Visit>
__device__ void each(int count, const Visit& visit) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += sample_threads) visit(i);
}

// Where the token stands in an ascending list; -1 when it does not.
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

__device__ inline void edit(const Row& row) {
  const SamplingRow& settings = row.settings;
  const int history = row.penalizes() ? Row::size(settings.history) : 0, bias = Row::size(settings.bias);
  each(history, [&](int i) {
    const ListEntry entry = row.begin(settings.history)[i];
    float l = row.logits[entry.token];
    row.saved[i] = l;
    l = l > 0.0f ? l / settings.repetition : l * settings.repetition;
    if (entry.value > 0.0f) l -= settings.presence + settings.frequency * entry.value;
    row.logits[entry.token] = l;
  });
  __syncthreads();
  each(bias, [&](int i) {
    const ListEntry entry = row.begin(settings.bias)[i];
    row.saved[row.vocab + i] = row.logits[entry.token];
    row.logits[entry.token] += entry.value;
  });
  __syncthreads();
}

// The model's own logit of a token, whatever edit() did to it.
__device__ inline float original(const Row& row, std::int32_t token) {
  const SamplingRow& settings = row.settings;
  if (row.penalizes()) {
    const int at = find(row.begin(settings.history), Row::size(settings.history), token);
    if (at >= 0) return row.saved[at];
  }
  const int at = find(row.begin(settings.bias), Row::size(settings.bias), token);
  return at >= 0 ? row.saved[row.vocab + at] : row.logits[token];
}

}  // namespace inferno::cuda
