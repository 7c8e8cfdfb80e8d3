// Matrix products in plain C++: each weight row is decoded once and multiplied with every row of the batch.
// The definition that linear_panels.cpp is tested against.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "backend/cpu/product_loop.h"
#include "tensor/format.h"

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

struct Product {
  Matrix out, in, bias;
};

void multiply_row(const Product& product, const LoopSegment& segment, int row, float* decoded) {
  const Weight& weight = *segment.weight;
  const ExpertBatch& batch = *segment.batch;
  const auto cols = static_cast<std::size_t>(weight.cols);
  const std::size_t bytes = bytes_for(weight.format, cols);
  const std::int64_t stored = std::int64_t{batch.expert} * weight.rows + row;
  const std::byte* blocks = weight.memory.data() + static_cast<std::size_t>(stored) * bytes;
  decode(weight.format, {blocks, bytes}, {decoded, cols});
  if (!weight.column_order.empty()) {  // back into the order of the input
    const std::int32_t* order = weight.column_order.data() + std::int64_t{batch.expert} * weight.cols;
    float* in_order = decoded + cols;
    std::copy_n(decoded, cols, in_order);
    for (std::size_t c = 0; c < cols; ++c) decoded[order[c]] = in_order[c];
  }
  const int column = segment.column + row;
  const float bias = product.bias ? floats(product.bias, batch.expert)[column] : 0.0f;
  for (int i = 0; i < batch.count; ++i) {
    floats(product.out, batch.first + i)[column] =
        bias + dot(floats_of(product.in, batch, i), decoded, weight.cols);
  }
}

void multiply_rows(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
                   std::span<const ExpertBatch> batches) {
  const ProductLoop loop(weights.parts, batches, 0, [](const Weight& weight) { return weight.rows; });
  const Product product = {out, in, weights.bias};
  const std::int64_t grain = grain_for(compute.pool, loop.total(), in.cols);
  compute.pool.parallel_for(loop.total(), grain, [&](const auto& range) {
    float* decoded = compute.scratch.own(range.worker, 2 * static_cast<std::size_t>(in.cols));
    loop.each(range.begin, range.end, [&](const LoopSegment& segment, int begin, int end) {
      for (int row = begin; row < end; ++row) multiply_row(product, segment, row, decoded);
    });
  });
}

}  // namespace

const float* floats_of(const Matrix& in, const ExpertBatch& batch, int i) {
  return floats(in, batch.input.empty() ? batch.first + i : batch.input[static_cast<std::size_t>(i)]);
}

void multiply(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
              std::span<const ExpertBatch> batches) {
  if (compute.kernels != nullptr) {
    multiply_panels(compute, out, in, weights, batches);
  } else {
    multiply_rows(compute, out, in, weights, batches);
  }
}

void linear(const Compute& compute, Matrix out, Matrix in, const Linear& weights) {
  const ExpertBatch all = {.expert = 0, .first = 0, .input = {}, .count = out.rows};
  multiply(compute, out, in, weights, {&all, 1});
}

}  // namespace inferno::cpu
