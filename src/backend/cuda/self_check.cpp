#include "backend/cuda/probe.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "tensor/float16.h"
#include "tensor/format.h"
#include "tensor/random_weight.h"

namespace inferno::cuda {
namespace {

constexpr int rows = 96, cols = 256;

// The relative distance between the device's product of a random weight and the CPU's.
double distance_of(Backend& backend, WeightFormat format, int tokens) {
  std::vector<std::byte> stored(bytes_for(format, std::size_t{rows} * cols));
  fill_random(format, stored, 0.5f, 7);
  std::vector<float> weight(std::size_t{rows} * cols);
  decode(format, stored, weight);
  std::vector<std::uint16_t> input(static_cast<std::size_t>(tokens) * cols);
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = float_to_bf16(static_cast<float>((i * 37 + 11) % 101) / 50.0f - 1.0f);
  }
  const Weight packed = backend.pack({format, 1, rows, cols, stored});
  const Buffer in_memory = backend.allocate(input.size() * 2, "self-test");
  const Buffer out_memory = backend.allocate(static_cast<std::size_t>(tokens) * rows * 4, "self-test");
  const Matrix in = {in_memory.data(), DType::bf16, tokens, cols},
               out = {out_memory.data(), DType::f32, tokens, rows};
  backend.upload(in, std::as_bytes(std::span(input)));
  Linear linear;
  linear.parts = {&packed};
  backend.linear(out, in, linear);
  std::vector<float> found(static_cast<std::size_t>(tokens) * rows);
  backend.download(std::as_writable_bytes(std::span(found)), out);
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    double expected = 0.0;
    for (std::size_t k = 0; k < cols; ++k) {
      expected += static_cast<double>(weight[i % rows * cols + k]) *
                  static_cast<double>(bf16_to_float(input[i / rows * cols + k]));
    }
    difference += (found[i] - expected) * (found[i] - expected);
    size += expected * expected;
  }
  return std::sqrt(difference / size);
}

}  // namespace

std::optional<std::string> self_check(int device) {
  constexpr double tolerance = 1e-2;
  try {
    const auto backend = make_cuda_backend(device);
    for (const WeightFormat format :
         {WeightFormat::bf16, WeightFormat::q8_0, WeightFormat::mxfp4, WeightFormat::q5_k}) {
      for (const int tokens : {1, 40}) {
        const double distance = distance_of(*backend, format, tokens);
        if (!(distance <= tolerance)) {
          const Weight weight = backend->weight_without_memory({format, 1, rows, cols});
          const Linear linear = {.parts = {&weight}, .bias = {}};
          return fmt::format("{} for {} token{}: the result is off by {:.2g}",
                             backend->kernel_for(LinearOperation{linear}, tokens), tokens,
                             tokens == 1 ? "" : "s", distance);
        }
      }
    }
  } catch (const Error& error) {
    return fmt::format("{}{}{}", error.what(), error.advice().why.empty() ? "" : ": ", error.advice().why);
  }
  return std::nullopt;
}

}  // namespace inferno::cuda
