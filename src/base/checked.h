// Arithmetic on sizes, offsets and counts that come from a file. Such numbers must not be used in
// plain arithmetic: nullopt means "does not fit", and the caller turns that into an error naming the field.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace inferno::checked {

constexpr std::optional<std::uint64_t> add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<std::uint64_t> mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The next multiple of `alignment`, which must be a power of two.
constexpr std::optional<std::uint64_t> align_up(std::uint64_t value, std::uint64_t alignment) {
  const auto padded = add(value, alignment - 1);
  if (!padded) return std::nullopt;
  return *padded & ~(alignment - 1);
}

// The number of elements of a shape; 1 for a scalar. nullopt also when a dimension is negative.
constexpr std::optional<std::uint64_t> elements(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto next = mul(count, static_cast<std::uint64_t>(size));
    if (!next) return std::nullopt;
    count = *next;
  }
  return count;
}

// elements() for a shape from a file. nullopt also if the product of the non-zero dimensions exceeds 63 bits,
// because code that uses the shape may multiply any of them.
constexpr std::optional<std::uint64_t> sound_elements(std::span<const std::int64_t> shape) {
  std::uint64_t largest = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto next = mul(largest, size == 0 ? 1 : static_cast<std::uint64_t>(size));
    if (!next || *next > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    largest = *next;
  }
  return elements(shape);
}

}  // namespace inferno::checked
