// Packed integers with scales and zero points: GPTQ, AWQ, compressed-tensors and plain bytes.
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

// Place i of a word of AWQ is output awq_order[i] of eight.
constexpr int awq_order[] = {0, 2, 4, 6, 1, 3, 5, 7};

// Some rows of a weight with one code to a byte, columns as in the file.
struct OpenRows {
  std::vector<std::uint8_t> codes;  // [rows, cols]
  std::vector<float> scales;        // [rows, groups]
  std::vector<std::uint8_t> zeros;  // [rows, groups]
};

template <class B>
concept Integers = requires(B block) {
  block.scale;
  block.zero;
};

class IntegerRows final : public BlockRows {
 public:
  explicit IntegerRows(IntegerWeight weight)
      : BlockRows(weight.format, weight.rows, weight.cols),
        weight_(std::move(weight)),
        cols_(static_cast<std::uint64_t>(weight_.cols)),
        groups_(static_cast<std::uint64_t>(weight_.groups)) {}

  void check_unchanged() const override {
    weight_.codes.source->check_unchanged();
    weight_.scales.source->check_unchanged();
    if (weight_.zeros) weight_.zeros->source->check_unchanged();
  }

 private:
  void make_rows(std::uint64_t first, std::uint64_t count, std::byte* to) const override {
    const OpenRows rows = open(first, count);
    visit(weight_.format, [&]<Block B>(B) {
      for (std::uint64_t r = 0; r < count; ++r) make_row<B>(rows, r, to + r * row_bytes());
    });
  }

  template <Block B>
  void make_row(const OpenRows& rows, std::uint64_t row, std::byte* to) const {
    if constexpr (Integers<B> || std::same_as<B, blocks::Q4_0> || std::same_as<B, blocks::Q8_0>) {
      for (std::uint64_t c = 0; c < cols_; c += B::elements, to += sizeof(B)) {
        const B block = make_block<B>(rows, row, c);
        std::memcpy(to, &block, sizeof(B));
      }
    } else {
      fail(ErrorKind::internal, "integers become blocks of integers");
    }
  }

  std::uint64_t column(std::uint64_t c) const {
    return weight_.column_order.empty() ? c : static_cast<std::uint64_t>(weight_.column_order[c]);
  }

  template <class B>
  B make_block(const OpenRows& rows, std::uint64_t row, std::uint64_t first) const {
    const auto group = static_cast<std::uint64_t>(weight_.group_of_column[column(first)]);
    const float scale = rows.scales[row * groups_ + group];
    const std::uint8_t zero = rows.zeros[row * groups_ + group];
    const std::uint8_t* codes = rows.codes.data() + row * cols_;
    B block = {};
    for (int i = 0; i < B::elements; ++i) {
      const std::uint8_t code = codes[column(first + static_cast<std::uint64_t>(i))];
      if constexpr (requires { block.quants; }) {
        block.quants[i] = static_cast<std::int8_t>(code - 128);
      } else if constexpr (requires { block.codes; }) {
        block.codes[i] = code;
      } else {
        put_code(block.nibbles, i, code);
      }
    }
    if constexpr (Integers<B>) {
      block.scale = blocks::PackedFloat::of(scale);
      block.zero = zero;
    } else {
      require_middle(zero);
      block.scale = float_to_f16(scale);
    }
    return block;
  }

  int middle() const { return 1 << (weight_.bits - 1); }

  // The config says that the weights are symmetric, and the format has no zero point.
  void require_middle(std::uint8_t zero) const {
    if (zero == middle()) return;
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} has a zero point of {}, but the config says \"sym\": true, which means {}",
                     weight_.origin, quote(weight_.name), zero, middle()),
         {.why = {}, .next = "use another checkpoint of this model"});
  }

  OpenRows open(std::uint64_t first, std::uint64_t count) const {
    OpenRows rows;
    rows.codes.resize(count * cols_);
    switch (weight_.packing) {
      case Packing::gptq: open_by_columns(first, count, rows.codes); break;
      case Packing::awq:
        open_awq(
            weight_.codes, {first, count, cols_},
            [&](std::uint64_t r, std::uint64_t c) -> std::uint8_t& { return rows.codes[r * cols_ + c]; });
        break;
      case Packing::compressed: open_by_rows(first, count, rows.codes); break;
      case Packing::bytes: open_bytes(first, count, rows.codes); break;
    }
    rows.scales = open_scales(first, count);
    rows.zeros = open_zeros(first, count);
    return rows;
  }

  // Columns of all words from `from` on, `per_word` of each.
  void open_by_columns(std::uint64_t first, std::uint64_t count, std::vector<std::uint8_t>& codes) const {
    const auto per_word = static_cast<std::uint64_t>(32 / weight_.bits);
    const auto rows = static_cast<std::uint64_t>(weight_.rows);
    const unsigned mask = (1u << weight_.bits) - 1u;
    for (std::uint64_t line = 0; line < cols_ / per_word; ++line) {
      const std::vector<std::uint32_t> words = read_words(weight_.codes, line * rows + first, count);
      for (std::uint64_t r = 0; r < count; ++r) {
        for (std::uint64_t i = 0; i < per_word; ++i) {
          const auto shift = i * static_cast<std::uint64_t>(weight_.bits);
          codes[r * cols_ + line * per_word + i] = static_cast<std::uint8_t>((words[r] >> shift) & mask);
        }
      }
    }
  }

  struct AwqRange {
    std::uint64_t first, count, lines;
  };
  // [lines, rows / 8] words: at(row - first, line) = code.
  template <class At>
  void open_awq(const StoredTensor& tensor, const AwqRange& range, const At& at) const {
    const std::uint64_t words = static_cast<std::uint64_t>(weight_.rows) / 8;
    const std::uint64_t begin = range.first / 8, end = (range.first + range.count + 7) / 8;
    for (std::uint64_t line = 0; line < range.lines; ++line) {
      const std::vector<std::uint32_t> found = read_words(tensor, line * words + begin, end - begin);
      for (std::uint64_t w = 0; w < found.size(); ++w) {
        for (std::uint64_t i = 0; i < 8; ++i) {
          const std::uint64_t row = (begin + w) * 8 + static_cast<std::uint64_t>(awq_order[i]);
          if (row < range.first || row >= range.first + range.count) continue;
          at(row - range.first, line) = static_cast<std::uint8_t>((found[w] >> (4 * i)) & 15u);
        }
      }
    }
  }

  void open_by_rows(std::uint64_t first, std::uint64_t count, std::vector<std::uint8_t>& codes) const {
    const auto per_word = static_cast<std::uint64_t>(32 / weight_.bits);
    const std::uint64_t line = (cols_ + per_word - 1) / per_word;
    const unsigned mask = (1u << weight_.bits) - 1u;
    const std::vector<std::uint32_t> words = read_words(weight_.codes, first * line, count * line);
    for (std::uint64_t r = 0; r < count; ++r) {
      for (std::uint64_t c = 0; c < cols_; ++c) {
        const auto shift = c % per_word * static_cast<std::uint64_t>(weight_.bits);
        codes[r * cols_ + c] = static_cast<std::uint8_t>((words[r * line + c / per_word] >> shift) & mask);
      }
    }
  }

  void open_bytes(std::uint64_t first, std::uint64_t count, std::vector<std::uint8_t>& codes) const {
    weight_.codes.read(first * cols_, std::as_writable_bytes(std::span(codes)).first(count * cols_));
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(code + 128u);
  }

  std::vector<float> open_scales(std::uint64_t first, std::uint64_t count) const {
    std::vector<float> scales;
    if (weight_.scales_by_group) {
      scales.resize(count * groups_);
      for (std::uint64_t g = 0; g < groups_; ++g) {
        const std::vector<float> line =
            read_numbers(weight_.scales, g * static_cast<std::uint64_t>(weight_.rows) + first, count);
        for (std::uint64_t r = 0; r < count; ++r) scales[r * groups_ + g] = line[r];
      }
    } else if (is_single(weight_.scales)) {
      scales.assign(count * groups_, read_numbers(weight_.scales, 0, 1).front());
    } else {
      scales = read_numbers(weight_.scales, first * groups_, count * groups_);
    }
    if (weight_.scale_divisor != 1.0f) {
      for (float& scale : scales) scale /= weight_.scale_divisor;
    }
    require_finite(scales, weight_.origin, weight_.name);
    return scales;
  }

  static bool is_single(const StoredTensor& tensor) { return tensor.bytes == block_bytes(tensor.format); }

  std::vector<std::uint8_t> open_zeros(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::uint8_t> zeros(count * groups_, static_cast<std::uint8_t>(middle()));
    if (!weight_.zeros) return zeros;
    const StoredTensor& tensor = *weight_.zeros;
    const auto bits = static_cast<std::uint64_t>(weight_.bits);
    const std::uint64_t per_word = 32 / bits;
    const unsigned mask = (1u << bits) - 1u;
    // Adding one to every field of a word at once also undoes the borrow of a field that was 0.
    const std::uint32_t one = !weight_.zeros_less_one ? 0u : bits == 4 ? 0x11111111u : 0x01010101u;
    switch (weight_.packing) {
      case Packing::gptq: {
        const std::uint64_t line = static_cast<std::uint64_t>(weight_.rows) / per_word;
        const std::uint64_t begin = first / per_word, end = (first + count + per_word - 1) / per_word;
        for (std::uint64_t g = 0; g < groups_; ++g) {
          const std::vector<std::uint32_t> words = read_words(tensor, g * line + begin, end - begin);
          for (std::uint64_t r = 0; r < count; ++r) {
            const std::uint64_t n = first + r;
            const std::uint32_t word = words[n / per_word - begin] + one;
            zeros[r * groups_ + g] = static_cast<std::uint8_t>((word >> (n % per_word * bits)) & mask);
          }
        }
        break;
      }
      case Packing::awq:
        open_awq(tensor, {first, count, groups_},
                 [&](std::uint64_t r, std::uint64_t g) -> std::uint8_t& { return zeros[r * groups_ + g]; });
        break;
      case Packing::compressed: {
        const std::uint64_t begin = first / per_word, end = (first + count + per_word - 1) / per_word;
        const std::vector<std::uint32_t> words = read_words(tensor, begin * groups_, (end - begin) * groups_);
        for (std::uint64_t r = 0; r < count; ++r) {
          for (std::uint64_t g = 0; g < groups_; ++g) {
            const std::uint64_t n = first + r;
            const std::uint32_t word = words[(n / per_word - begin) * groups_ + g];
            zeros[r * groups_ + g] = static_cast<std::uint8_t>((word >> (n % per_word * bits)) & mask);
          }
        }
        break;
      }
      case Packing::bytes: {
        const bool single = is_single(tensor);
        const std::vector<std::byte> bytes =
            single ? read_bytes(tensor, 0, 1) : read_bytes(tensor, first * groups_, count * groups_);
        for (std::size_t i = 0; i < zeros.size(); ++i) {
          zeros[i] = static_cast<std::uint8_t>(std::to_integer<unsigned>(bytes[single ? 0 : i]) + 128u);
        }
        break;
      }
    }
    return zeros;
  }

  IntegerWeight weight_;
  std::uint64_t cols_, groups_;
};

}  // namespace

std::shared_ptr<const ByteSource> integer_rows(IntegerWeight weight) {
  return std::make_shared<IntegerRows>(std::move(weight));
}

}  // namespace inferno
