#include "tensor/decode.h"

#include <cstring>

#include "base/error.h"

namespace inferno {

void decode(WeightFormat format, std::span<const std::byte> blocks, std::span<float> out) {
  visit(format, [&]<Block B>(B block) {
    constexpr std::size_t elements = B::elements;
    expects(out.size() % elements == 0, "decode: the output is whole blocks");
    expects(blocks.size() == out.size() / elements * sizeof(B), "decode: input and output agree in size");
    for (std::size_t first = 0, at = 0; first < out.size(); first += elements, at += sizeof(B)) {
      std::memcpy(&block, blocks.data() + at, sizeof(B));
      for (int i = 0; i < B::elements; ++i) out[first + static_cast<std::size_t>(i)] = block[i];
    }
  });
}

}  // namespace inferno
