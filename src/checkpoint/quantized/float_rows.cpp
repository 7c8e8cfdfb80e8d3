// Narrow floats with scales: FP8, NVFP4 and the tables of bitsandbytes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/quantized/block_rows.h"
#include "checkpoint/quantized/row_source.h"
#include "tensor/float16.h"

namespace inferno {
namespace {

bool is_nan_code(std::byte code) {
  return (code & std::byte{0x7F}) == std::byte{0x7F};
}

template <class B>
concept Fp8Block = requires(B block) {
  block.scale;
  block.codes;
} && !requires(B block) { block.zero; };
template <class B>
concept Nvfp4Block = requires(B block) { block.factor; };
template <class B>
concept TableBlock = requires(B block) {
  block.scale.bytes;
  block.nibbles;
} && !requires(B block) { block.zero; };

class Fp8Rows final : public BlockRows {
 public:
  explicit Fp8Rows(Fp8Weight weight)
      : BlockRows(weight.format, weight.rows, weight.cols), weight_(std::move(weight)) {}

  void check_unchanged() const override {
    weight_.codes.source->check_unchanged();
    weight_.scales.source->check_unchanged();
  }

 private:
  void make_rows(std::uint64_t first, std::uint64_t count, std::byte* to) const override {
    const auto cols = static_cast<std::uint64_t>(weight_.cols);
    const std::vector<std::byte> codes = read_bytes(weight_.codes, first * cols, count * cols);
    refuse_nan(codes);
    const std::uint64_t begin = scale_line(first), end = scale_line(first + count - 1) + 1;
    const std::vector<float> scales = open_scales(begin, end);
    const auto width = static_cast<std::size_t>(weight_.scale_cols);
    visit(weight_.format, [&]<Block B>(B) {
      for (std::uint64_t r = 0; r < count; ++r) {
        const std::span<const float> line =
            std::span(scales).subspan((scale_line(first + r) - begin) * width, width);
        make_row<B>(codes.data() + r * cols, line, to + r * row_bytes());
      }
    });
  }

  template <Block B>
  void make_row(const std::byte* codes, std::span<const float> scales, std::byte* to) const {
    if constexpr (Fp8Block<B>) {
      for (std::int64_t c = 0; c < weight_.cols; c += B::elements, to += sizeof(B)) {
        B block = {};
        const auto at = static_cast<std::size_t>(c / weight_.block_cols);
        block.scale = blocks::PackedFloat::of(scales[std::min(at, scales.size() - 1)]);
        std::memcpy(block.codes, codes + c, sizeof(block.codes));
        std::memcpy(to, &block, sizeof(B));
      }
    } else {
      fail(ErrorKind::internal, "FP8 weights become blocks of FP8");
    }
  }

  std::uint64_t scale_line(std::uint64_t row) const {
    return std::min(row / static_cast<std::uint64_t>(weight_.block_rows),
                    static_cast<std::uint64_t>(weight_.scale_rows - 1));
  }

  // Lines [begin, end) of the scales.
  std::vector<float> open_scales(std::uint64_t begin, std::uint64_t end) const {
    const auto width = static_cast<std::uint64_t>(weight_.scale_cols);
    const std::uint64_t first = begin * width, count = (end - begin) * width;
    std::vector<float> scales(count);
    if (weight_.scales_are_exponents) {
      const std::vector<std::byte> bytes = read_bytes(weight_.scales, first, count);
      std::ranges::transform(bytes, scales.begin(), [](std::byte exponent) {
        return e8m0_to_float(std::to_integer<std::uint8_t>(exponent));
      });
    } else {
      scales = read_numbers(weight_.scales, first, count);
    }
    require_finite(scales, weight_.origin, weight_.name);
    return scales;
  }

  void refuse_nan(const std::vector<std::byte>& codes) const {
    if (std::ranges::none_of(codes, is_nan_code)) return;
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} has an FP8 weight that is not a number", weight_.origin, quote(weight_.name)),
         {.why = {}, .next = "download the model again, or use another checkpoint of it"});
  }

  Fp8Weight weight_;
};

class Nvfp4Rows final : public BlockRows {
 public:
  explicit Nvfp4Rows(Nvfp4Weight weight)
      : BlockRows(weight.format, weight.rows, weight.cols), weight_(std::move(weight)) {}

  void check_unchanged() const override {
    for (const StoredTensor* tensor : {&weight_.codes, &weight_.scales, &weight_.factor}) {
      tensor->source->check_unchanged();
    }
  }

 private:
  void make_rows(std::uint64_t first, std::uint64_t count, std::byte* to) const override {
    const auto cols = static_cast<std::uint64_t>(weight_.cols);
    float factor = read_numbers(weight_.factor, 0, 1).front();
    if (weight_.is_divisor) factor = 1.0f / factor;
    require_finite({&factor, 1}, weight_.origin, weight_.name);
    const std::vector<std::byte> codes = read_bytes(weight_.codes, first * cols / 2, count * cols / 2);
    const std::vector<std::byte> scales = read_bytes(weight_.scales, first * cols / 16, count * cols / 16);
    const float nan = f8_e4m3_to_float(0x7F);
    if (std::ranges::any_of(scales, is_nan_code)) require_finite({&nan, 1}, weight_.origin, weight_.name);
    visit(weight_.format, [&]<Block B>(B) {
      if constexpr (Nvfp4Block<B>) {
        B* unused = nullptr;
        make_blocks(unused, {codes.data(), scales.data(), factor, count * cols}, to);
      }
    });
  }

  struct Part {
    const std::byte *codes, *scales;
    float factor;
    std::uint64_t elements;
  };
  template <class B>
  void make_blocks(const B*, const Part& part, std::byte* to) const {
    for (std::uint64_t at = 0; at < part.elements; at += B::elements, to += sizeof(B)) {
      B block = {};
      block.factor = blocks::PackedFloat::of(part.factor);
      std::memcpy(block.scales, part.scales + at / 16, sizeof(block.scales));
      for (int i = 0; i < B::elements; ++i) {
        const auto byte = std::to_integer<unsigned>(part.codes[at / 2 + static_cast<std::uint64_t>(i) / 2]);
        put_code(block.nibbles, i, i % 2 == 0 ? byte & 15u : byte >> 4);
      }
      std::memcpy(to, &block, sizeof(B));
    }
  }

  Nvfp4Weight weight_;
};

class Table4Rows final : public BlockRows {
 public:
  explicit Table4Rows(Table4Weight weight)
      : BlockRows(weight.format, weight.rows, weight.cols), weight_(std::move(weight)) {}

  void check_unchanged() const override {
    weight_.codes.source->check_unchanged();
    weight_.scales.source->check_unchanged();
  }

 private:
  void make_rows(std::uint64_t first, std::uint64_t count, std::byte* to) const override {
    const auto cols = static_cast<std::uint64_t>(weight_.cols);
    const std::uint64_t begin = first * cols, end = begin + count * cols;  // elements
    const std::vector<std::byte> codes = read_bytes(weight_.codes, begin / 2, end / 2 - begin / 2);
    const auto block = static_cast<std::uint64_t>(weight_.block);
    const std::uint64_t first_scale = begin / block;
    const std::vector<float> scales = open_scales(first_scale, (end - 1) / block + 1 - first_scale);
    visit(weight_.format, [&]<Block B>(B) {
      if constexpr (TableBlock<B>) {
        std::byte* row = to;
        for (std::uint64_t at = begin; at < end; at += B::elements, row += sizeof(B)) {
          B made = {};
          made.scale = blocks::PackedFloat::of(scales[at / block - first_scale]);
          for (int i = 0; i < B::elements; ++i) {
            const std::uint64_t element = at - begin + static_cast<std::uint64_t>(i);
            const auto byte = std::to_integer<unsigned>(codes[element / 2]);
            put_code(made.nibbles, i, i % 2 == 0 ? byte >> 4 : byte & 15u);
          }
          std::memcpy(row, &made, sizeof(B));
        }
      }
    });
  }

  std::vector<float> open_scales(std::uint64_t first, std::uint64_t count) const {
    std::vector<float> scales;
    if (!weight_.nested_scales) {
      scales = read_numbers(weight_.scales, first, count);
    } else {
      const std::vector<std::byte> indices = read_bytes(weight_.scales, first, count);
      const std::vector<float> table = read_numbers(*weight_.nested_table, 0, 256);
      const auto block = static_cast<std::uint64_t>(weight_.nested_block);
      const std::uint64_t begin = first / block;
      const std::vector<float> outer =
          read_numbers(*weight_.nested_scales, begin, (first + count - 1) / block + 1 - begin);
      scales.resize(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        scales[i] = table[std::to_integer<std::size_t>(indices[i])] * outer[(first + i) / block - begin] +
                    weight_.nested_offset;
      }
    }
    require_finite(scales, weight_.origin, weight_.name);
    return scales;
  }

  Table4Weight weight_;
};

class CheckedExponents final : public ByteSource {
 public:
  CheckedExponents(std::shared_ptr<const ByteSource> inner, std::string origin, std::string name)
      : inner_(std::move(inner)), origin_(std::move(origin)), name_(std::move(name)) {}

  std::uint64_t size() const override { return inner_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    inner_->read(offset, to);
    const float nan = e8m0_to_float(0xFF);
    if (std::ranges::find(to, std::byte{0xFF}) != to.end()) require_finite({&nan, 1}, origin_, name_);
  }
  void check_unchanged() const override { inner_->check_unchanged(); }

 private:
  std::shared_ptr<const ByteSource> inner_;
  std::string origin_, name_;
};

}  // namespace

StoredTensor checked_exponents(StoredTensor exponents, std::string origin, std::string name) {
  exponents.source =
      std::make_shared<CheckedExponents>(std::move(exponents.source), std::move(origin), std::move(name));
  return exponents;
}

std::shared_ptr<const ByteSource> fp8_rows(Fp8Weight weight) {
  return std::make_shared<Fp8Rows>(std::move(weight));
}

std::shared_ptr<const ByteSource> nvfp4_rows(Nvfp4Weight weight) {
  return std::make_shared<Nvfp4Rows>(std::move(weight));
}

std::shared_ptr<const ByteSource> table4_rows(Table4Weight weight) {
  return std::make_shared<Table4Rows>(std::move(weight));
}

}  // namespace inferno
