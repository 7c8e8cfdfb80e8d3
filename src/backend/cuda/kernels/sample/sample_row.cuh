// A row of logits being sampled: its settings, which part of it a block has, and the edits that come before
// the draw.
#pragma once

#include "backend/cuda/kernels/sample/sample_team.cuh"
#include "backend/sampling.h"

namespace inferno::cuda {

struct Row {
  const SamplingRow& settings;
  const ListEntry* lists;
  float* logits;
  int vocab;
  float *weights, *keys, *saved;  // scratch: of the candidates, of the candidates, of edited tokens
  std::int32_t* tokens;
  Stretch here, choices_here;  // of the vocabulary and of the tokens that may be drawn: this block's

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

// Every block edits the tokens that it will look at; the first one, all of them if there is a list of allowed
// ones, which it has to itself.
__device__ inline void edit(const Row& row) {
  const SamplingRow& settings = row.settings;
  const bool listed = row.choices() != row.vocab;
  const auto mine = [&](std::int32_t token) {
    return listed ? row.choices_here.size() > 0 : token >= row.here.begin && token < row.here.end;
  };
  each(row.penalizes() ? Row::size(settings.history) : 0, [&](int i) {
    const ListEntry entry = row.begin(settings.history)[i];
    if (!mine(entry.token)) return;
    float l = row.logits[entry.token];
    row.saved[i] = l;
    l = l > 0.0f ? l / settings.repetition : l * settings.repetition;
    if (entry.value > 0.0f) l -= settings.presence + settings.frequency * entry.value;
    row.logits[entry.token] = l;
  });
  __syncthreads();
  each(Row::size(settings.bias), [&](int i) {
    const ListEntry entry = row.begin(settings.bias)[i];
    if (!mine(entry.token)) return;
    row.saved[row.vocab + i] = row.logits[entry.token];
    row.logits[entry.token] += entry.value;
  });
  __syncthreads();
}

// The model's own logit of a token, whatever edit() did to it, maybe in another block: L1 must not answer.
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
