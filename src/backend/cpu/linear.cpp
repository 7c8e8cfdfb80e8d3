// Matrix products: each weight row is read once and multiplied with every row of the batch.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"
#include "tensor/decode.h"

namespace inferno::cpu {
namespace {

// Eight sums at once: enough for the compiler to vectorize without reordering a single sum by itself.
float dot(const float* a, const float* b, int count) {
  float sums[8] = {};
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Rows of one part for one batch, and where they stand in the loop over all of them.
struct Stretch {
  const ExpertBatch* batch;
  const Weight* weight;
  int column;          // of the output, where the part's rows begin
  std::int64_t begin;  // of the loop
};

std::vector<Stretch> stretches_of(const Linear& weights, std::span<const ExpertBatch> batches) {
  std::vector<Stretch> stretches;
  std::int64_t at = 0;
  for (const ExpertBatch& batch : batches) {
    int column = 0;
    for (const Weight* part : weights.parts) {
      stretches.push_back({&batch, part, column, at});
      column += part->rows;
      at += part->rows;
    }
  }
  return stretches;
}

struct Product {
  Matrix out, in, bias;
};

void multiply_row(const Product& product, const Stretch& stretch, std::int64_t row, float* decoded) {
  const Weight& weight = *stretch.weight;
  const ExpertBatch& batch = *stretch.batch;
  const auto cols = static_cast<std::size_t>(weight.cols);
  const std::size_t bytes = bytes_for(weight.format, cols);
  const std::int64_t stored = std::int64_t{batch.expert} * weight.rows + row;
  const std::byte* blocks = weight.memory.data() + static_cast<std::size_t>(stored) * bytes;
  decode(weight.format, {blocks, bytes}, {decoded, cols});
  const std::int64_t column = stretch.column + row;
  const float bias = product.bias ? floats(product.bias, batch.expert)[column] : 0.0f;
  for (int i = 0; i < batch.count; ++i) {
    const int source = batch.input.empty() ? batch.first + i : batch.input[static_cast<std::size_t>(i)];
    floats(product.out, batch.first + i)[column] =
        bias + dot(floats(product.in, source), decoded, weight.cols);
  }
}

}  // namespace

void multiply(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
              std::span<const ExpertBatch> batches) {
  const std::vector<Stretch> stretches = stretches_of(weights, batches);
  if (stretches.empty()) return;
  const std::int64_t total = stretches.back().begin + stretches.back().weight->rows;
  const Product product = {out, in, weights.bias};
  compute.pool.parallel_for(total, grain_for(compute.pool, total, in.cols), [&](const auto& range) {
    float* decoded = compute.scratch.own(range.worker, static_cast<std::size_t>(in.cols));
    auto stretch = std::upper_bound(stretches.begin(), stretches.end(), range.begin,
                                    [](std::int64_t at, const Stretch& s) { return at < s.begin; }) -
                   1;
    for (auto i = range.begin; i < range.end; ++i) {
      while (i - stretch->begin >= stretch->weight->rows) ++stretch;
      multiply_row(product, *stretch, i - stretch->begin, decoded);
    }
  });
}

void linear(const Compute& compute, Matrix out, Matrix in, const Linear& weights) {
  const ExpertBatch all = {.expert = 0, .first = 0, .input = {}, .count = out.rows};
  multiply(compute, out, in, weights, {&all, 1});
}

}  // namespace inferno::cpu
