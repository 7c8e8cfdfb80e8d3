// A weight in a checkpoint: where its bytes are and what they mean. Nothing is read before read() is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_source.h"
#include "tensor/format.h"

namespace inferno {

// The reader of the file has already checked that shape, format and size agree and that the range is inside
// the source.
struct StoredTensor {
  WeightFormat format = WeightFormat::f32;
  std::vector<std::int64_t> shape;  // outermost first, whatever the file's own order
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  // Not null: column c of the tensor multiplies input (*column_order)[c] (WeightSource::column_order).
  std::shared_ptr<const std::vector<std::int32_t>> column_order = nullptr;
  bool is_joined = false;  // codes and scales are two tensors of the file, joined while reading

  // Fills `to` from byte `from` of the tensor on.
  void read(std::uint64_t from, std::span<std::byte> to) const { source->read(offset + from, to); }
};

}  // namespace inferno
