#include "support/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "tensor/float16.h"
#include "tensor/format.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard = std::byte{0xA5};
constexpr std::byte poison = std::byte{0xFF};  // all ones is NaN in every float type

std::uint16_t narrowed(float value, DType type) {
  return type == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
}

float widened(std::uint16_t bits, DType type) {
  return type == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

void append(std::vector<std::byte>& bytes, const auto& value) {
  const auto part = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

// llama.cpp's q8_0: the step is the largest magnitude / 127, kept as f16. NaN makes a block of NaN.
void append_q8_0(std::vector<std::byte>& bytes, std::span<double> values) {
  float largest = 0.0f;
  bool is_poison = false;
  for (const double value : values) {
    largest = std::max(largest, std::abs(static_cast<float>(value)));
    is_poison = is_poison || std::isnan(value);
  }
  const float step = largest / 127.0f, inverse = step > 0.0f ? 1.0f / step : 0.0f;
  const std::uint16_t scale = is_poison ? 0x7E00 : float_to_f16(step);
  append(bytes, scale);
  for (double& value : values) {
    const float code = is_poison ? 0.0f : std::nearbyint(static_cast<float>(value) * inverse);
    append(bytes, static_cast<std::int8_t>(code));
    value = f16_to_float(scale) * code;
  }
}

bool holds_whole_numbers(WeightFormat format) {
  return visit(format, []<Block B>(B block) {
    if constexpr (requires { block.value; }) {
      return std::is_integral_v<decltype(block.value)>;
    } else {
      return false;
    }
  });
}

// Blocks of their own scale each, from 0.5 to 1.5 times the one they all have: a kernel that takes the scale
// of a neighbor is wrong.
void vary_scales(WeightFormat format, std::span<std::byte> content, std::uint64_t seed) {
  visit(format, [&]<Block B>(B block) {
    if constexpr (blocks::Scaled<B>) {
      std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
      for (std::size_t at = 0; at + sizeof(B) <= content.size(); at += sizeof(B)) {
        std::memcpy(&block, content.data() + at, sizeof(B));
        const float times = 0.5f + static_cast<float>(random() >> 8) * 0x1p-24f;
        if constexpr (requires { block.factor; }) {
          block.factor = blocks::PackedFloat::of(block.factor.value() * times);
        } else {
          block.scale = blocks::PackedFloat::of(block.scale.value() * times);
        }
        std::memcpy(content.data() + at, &block, sizeof(B));
      }
    }
  });
}

}  // namespace

Matrix Device::reserve(int rows, int cols, DType type, std::vector<std::byte> content) {
  Matrix matrix = {nullptr, type, rows, cols};
  expects(content.size() == matrix.bytes(), "the content fills the matrix");
  content.resize(content.size() + guard_bytes, guard);
  content.resize((content.size() + 3) / 4 * 4, guard);
  memory_.push_back(backend_->allocate(content.size(), "test"));
  matrix.data = memory_.back().data();
  const Matrix everything = {matrix.data, DType::i32, 1, static_cast<std::int32_t>(content.size() / 4)};
  backend_->upload(everything, content);
  return matrix;
}

Matrix Device::upload(HostMatrix& values, DType type) {
  std::vector<std::byte> content;
  if (type == DType::q8_0) {
    for (std::size_t at = 0; at < values.values.size(); at += 32) {
      append_q8_0(content, std::span(values.values).subspan(at, 32));
    }
    return reserve(values.rows, values.cols, type, std::move(content));
  }
  for (double& value : values.values) {
    const float single = static_cast<float>(value);
    if (type == DType::f32) {
      append(content, single);
      value = single;
    } else if (type == DType::f8_e4m3) {
      const std::uint8_t code = float_to_f8_e4m3(single);
      append(content, code);
      value = f8_e4m3_to_float(code);
    } else {
      const std::uint16_t bits = narrowed(single, type);
      append(content, bits);
      value = widened(bits, type);
    }
  }
  return reserve(values.rows, values.cols, type, std::move(content));
}

Matrix Device::upload(std::span<const std::int32_t> values, int cols) {
  const auto bytes = std::as_bytes(values);
  return reserve(static_cast<int>(values.size()) / cols, cols, DType::i32, {bytes.begin(), bytes.end()});
}

Matrix Device::poisoned(int rows, int cols, DType type) {
  const Matrix shape = {nullptr, type, rows, cols};
  return reserve(rows, cols, type, std::vector<std::byte>(shape.bytes(), poison));
}

std::vector<std::byte> Device::bytes(Matrix matrix) {
  const std::size_t size = matrix.bytes();
  std::vector<std::byte> content((size + guard_bytes + 3) / 4 * 4);
  const Matrix everything = {matrix.data, DType::i32, 1, static_cast<std::int32_t>(content.size() / 4)};
  backend_->download(content, everything);
  const auto end = content.begin() + static_cast<std::ptrdiff_t>(size);
  EXPECT_TRUE(std::all_of(end, content.end(), [](std::byte b) { return b == guard; }))
      << "something was written past the end of a matrix of [" << matrix.rows << ", " << matrix.cols << "]";
  content.resize(size);
  return content;
}

HostMatrix Device::download(Matrix matrix) {
  const std::vector<std::byte> content = bytes(matrix);
  HostMatrix values(matrix.rows, matrix.cols);
  if (matrix.dtype == DType::q8_0 || matrix.dtype == DType::f8_e4m3) {
    std::vector<float> decoded(values.values.size());
    decode(matrix.dtype == DType::q8_0 ? WeightFormat::q8_0 : WeightFormat::f8_e4m3, content, decoded);
    values.values.assign(decoded.begin(), decoded.end());
    return values;
  }
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    if (matrix.dtype == DType::f32) {
      float single;
      std::memcpy(&single, content.data() + i * sizeof(single), sizeof(single));
      values.values[i] = single;
    } else {
      std::uint16_t bits;
      std::memcpy(&bits, content.data() + i * sizeof(bits), sizeof(bits));
      values.values[i] = widened(bits, matrix.dtype);
    }
  }
  return values;
}

const TestWeight& Device::weight(const WeightShape& shape, std::uint64_t seed, bool is_reordered) {
  const std::size_t one = static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols);
  const std::size_t one_bytes = bytes_for(shape.format, one);
  std::vector<std::byte> content(one_bytes * static_cast<std::size_t>(shape.count));
  fill_random(shape.format, content, holds_whole_numbers(shape.format) ? 2.0f : 0.5f, seed);
  vary_scales(shape.format, content, seed);
  std::vector<std::int32_t> order;
  for (int i = 0; is_reordered && i < shape.count; ++i) {
    const std::vector<std::int32_t> own = shuffled(shape.cols, seed + static_cast<std::uint64_t>(i));
    order.insert(order.end(), own.begin(), own.end());
  }
  TestWeight weight = {backend_->pack({shape.format, shape.count, shape.rows, shape.cols, content, order}),
                       {}};
  for (std::int32_t i = 0; i < shape.count; ++i) {
    std::vector<float> decoded(one);
    decode(shape.format, std::span(content).subspan(static_cast<std::size_t>(i) * one_bytes, one_bytes),
           decoded);
    HostMatrix values(shape.rows, shape.cols);
    for (std::size_t at = 0; at < one; ++at) {
      const auto cols = static_cast<std::size_t>(shape.cols);
      const std::size_t column =
          is_reordered ? static_cast<std::size_t>(order[static_cast<std::size_t>(i) * cols + at % cols])
                       : at % cols;
      values.values[at - at % cols + column] = decoded[at];
    }
    weight.values.push_back(std::move(values));
  }
  weights_.push_back(std::move(weight));
  return weights_.back();
}

}  // namespace inferno
