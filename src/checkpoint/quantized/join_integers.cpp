// Integer weights: which words are whose codes, and under which scale.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "checkpoint/quantized/quantized_module.h"
#include "checkpoint/quantized/row_source.h"

namespace inferno {
namespace {

std::int64_t rounded_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::vector<std::int32_t> read_indices(const StoredTensor& tensor) {
  std::vector<std::int32_t> indices(tensor.bytes / sizeof(std::int32_t));
  tensor.read(0, std::as_writable_bytes(std::span(indices)));
  return indices;
}

// The group of every column: from g_idx, or columns in order.
std::vector<std::int32_t> groups_of_columns(const QuantizedModule& module, std::string_view suffix,
                                            const IntegerWeight& weight, std::int64_t group) {
  std::vector<std::int32_t> groups(static_cast<std::size_t>(weight.cols));
  for (std::size_t c = 0; c < groups.size(); ++c) {
    groups[c] = static_cast<std::int32_t>(static_cast<std::int64_t>(c) / group);
  }
  const StoredTensor* stored = module.find(suffix);
  if (stored == nullptr) return groups;
  if (module.type_of(suffix) != "I32")
    module.refuse(fmt::format("has {} of type {}", suffix, module.type_of(suffix)));
  module.require_shape(suffix, {weight.cols});
  std::vector<std::int32_t> given = read_indices(*stored);
  if (std::ranges::all_of(given, [](std::int32_t g) { return g == -1; }))
    return groups;  // declared, not used
  for (const std::int32_t g : given) {
    if (g < 0 || g >= weight.groups) {
      module.refuse(fmt::format("has group {} in {}, but {} groups of scales", g, suffix, weight.groups));
    }
  }
  return given;
}

// Columns sorted by group; empty if they are in order already.
std::vector<std::int32_t> sorted_columns(const std::vector<std::int32_t>& groups) {
  if (std::ranges::is_sorted(groups)) return {};
  std::vector<std::int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t c) { return groups[static_cast<std::size_t>(c)]; });
  return order;
}

// A number that divides the length of every group.
std::int64_t common_length(const std::vector<std::int32_t>& groups, std::int64_t count) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count));
  for (const std::int32_t g : groups) ++lengths[static_cast<std::size_t>(g)];
  std::int64_t common = 0;
  for (const std::int64_t length : lengths) common = std::gcd(common, length);
  return common;
}

struct BlockChoice {
  std::int64_t elements;
  WeightFormat format;
};
constexpr std::array blocks_of_4 = {BlockChoice{128, WeightFormat::int4_128},
                                    BlockChoice{64, WeightFormat::int4_64},
                                    BlockChoice{32, WeightFormat::int4_32}};
constexpr std::array blocks_of_8 = {BlockChoice{64, WeightFormat::int8_64},
                                    BlockChoice{32, WeightFormat::int8_32},
                                    BlockChoice{16, WeightFormat::int8_16}};

// The largest blocks that never hold columns of two groups. Symmetric weights with f16 scales are Q4_0 or
// Q8_0 to the bit.
WeightFormat format_for(const QuantizedModule& module, const IntegerWeight& weight, bool symmetric) {
  const std::int64_t common = common_length(weight.group_of_column, weight.groups);
  if (symmetric && common % 32 == 0 && weight.scales.format == WeightFormat::f16 &&
      weight.scale_divisor == 1.0f) {
    return weight.bits == 4 ? WeightFormat::q4_0 : WeightFormat::q8_0;
  }
  for (const BlockChoice& block : weight.bits == 4 ? blocks_of_4 : blocks_of_8) {
    if (common % block.elements == 0) return block.format;
  }
  module.refuse_layout(fmt::format("has groups of {} columns", common),
                       fmt::format("groups of {}-bit weights are read in multiples of {} columns",
                                   weight.bits, weight.bits == 4 ? 32 : 16));
}

StoredTensor finish(const QuantizedModule& module, IntegerWeight weight, bool symmetric) {
  weight.name = module.name;
  weight.origin = module.origin;
  weight.column_order = sorted_columns(weight.group_of_column);
  weight.format = format_for(module, weight, symmetric);
  StoredTensor out = {.format = weight.format,
                      .shape = {weight.rows, weight.cols},
                      .source = nullptr,
                      .offset = 0,
                      .bytes = 0,
                      .column_order = nullptr,
                      .is_joined = true};
  if (!weight.column_order.empty()) {
    out.column_order = std::make_shared<const std::vector<std::int32_t>>(weight.column_order);
  }
  out.source = integer_rows(std::move(weight));
  out.bytes = out.source->size();
  return out;
}

const StoredTensor& get_words(const QuantizedModule& module, std::string_view suffix) {
  const StoredTensor& tensor = module.get(suffix);
  if (module.type_of(suffix) != "I32" || tensor.shape.size() != 2) {
    module.refuse(fmt::format("has {} of type {} and shape [{}], expected I32 words in two dimensions",
                              suffix, module.type_of(suffix), fmt::join(tensor.shape, ", ")));
  }
  return tensor;
}

const StoredTensor& get_matrix(const QuantizedModule& module, std::string_view suffix) {
  const StoredTensor& tensor = module.get_scales(suffix);
  if (tensor.shape.size() != 2 || tensor.shape[0] < 1 || tensor.shape[1] < 1) {
    module.refuse(
        fmt::format("has {} of shape [{}], expected two dimensions", suffix, fmt::join(tensor.shape, ", ")));
  }
  return tensor;
}

// The group size that the config gives the module, if its number of groups is the tensors'.
std::int64_t group_size(const QuantizedModule& module, const QuantizationConfig& config,
                        const IntegerWeight& weight) {
  const auto scheme = config.scheme_of(module.name);
  const int given = scheme ? scheme->group : 0;
  const std::int64_t group = given < 0 ? weight.cols : given;
  if (group > 0 && rounded_up(weight.cols, group) == weight.groups) return group;
  return rounded_up(weight.cols, weight.groups);
}

StoredTensor join_gptq(const QuantizedModule& module, const QuantizationConfig& config, FoundScheme& found) {
  const StoredTensor& codes = get_words(module, ".qweight");
  const StoredTensor& zeros = get_words(module, ".qzeros");
  const StoredTensor& scales = get_matrix(module, ".scales");
  IntegerWeight weight = {.packing = Packing::gptq, .codes = codes, .scales = scales, .zeros = zeros};
  weight.rows = scales.shape[1];
  weight.groups = scales.shape[0];
  weight.scales_by_group = true;
  weight.zeros_less_one = config.zeros_less_one;
  // Zero points are packed along the rows, which the scales count.
  for (const int bits : {4, 8, 2, 3}) {
    if (zeros.shape[1] * 32 == weight.rows * bits) weight.bits = bits;
  }
  if (zeros.shape[1] * 32 == weight.rows * weight.bits && weight.bits < 4) {
    module.refuse_layout(fmt::format("has {} bits", weight.bits), "only 4 and 8 bits are read");
  }
  module.require_shape(".qzeros", {weight.groups, weight.rows * weight.bits / 32});
  weight.cols = codes.shape[0] * (32 / weight.bits);
  module.require_shape(".qweight", {weight.cols * weight.bits / 32, weight.rows});
  if (weight.cols == 0 || weight.groups > weight.cols) module.refuse("has more groups than columns");
  weight.group_of_column = groups_of_columns(module, ".g_idx", weight, group_size(module, config, weight));
  found = {.bits = weight.bits, .cols = weight.cols, .groups = weight.groups};
  const auto scheme = config.scheme_of(module.name);
  return finish(module, std::move(weight), scheme && scheme->is_symmetric);
}

StoredTensor join_awq(const QuantizedModule& module, FoundScheme& found) {
  const StoredTensor& codes = get_words(module, ".qweight");
  const StoredTensor& scales = get_matrix(module, ".scales");
  IntegerWeight weight = {
      .packing = Packing::awq, .codes = codes, .scales = scales, .zeros = get_words(module, ".qzeros")};
  weight.rows = scales.shape[1];
  weight.groups = scales.shape[0];
  weight.cols = codes.shape[0];
  weight.scales_by_group = true;
  if (weight.rows % 8 != 0) module.refuse(fmt::format("has {} rows, expected a multiple of 8", weight.rows));
  module.require_shape(".qweight", {weight.cols, weight.rows / 8});
  module.require_shape(".qzeros", {weight.groups, weight.rows / 8});
  if (weight.cols == 0 || weight.cols % weight.groups != 0) {
    module.refuse(fmt::format("has {} columns in {} groups", weight.cols, weight.groups));
  }
  weight.group_of_column = groups_of_columns(module, ".g_idx", weight, weight.cols / weight.groups);
  found = {.bits = 4, .cols = weight.cols, .groups = weight.groups};
  return finish(module, std::move(weight), false);
}

// [rows, columns] of a packed weight. A file of which only the header was fetched has zeros there: then the
// words and the config's bits say the same, up to padding.
void read_weight_shape(const QuantizedModule& module, const QuantizationConfig& config,
                       IntegerWeight& weight) {
  const StoredTensor& stored = module.get(".weight_shape");
  const std::string_view type = module.type_of(".weight_shape");
  if (stored.shape != std::vector<std::int64_t>{2} || (type != "I64" && type != "I32")) {
    module.refuse("has a .weight_shape that is not two whole numbers");
  }
  std::array<std::int64_t, 2> sizes = {};
  if (type == "I64") {
    stored.read(0, std::as_writable_bytes(std::span(sizes)));
  } else {
    std::array<std::int32_t, 2> narrow = {};
    stored.read(0, std::as_writable_bytes(std::span(narrow)));
    sizes = {narrow[0], narrow[1]};
  }
  if (sizes[0] == 0 && sizes[1] == 0) {
    const auto scheme = config.scheme_of(module.name);
    sizes = {weight.codes.shape[0], weight.codes.shape[1] * (scheme && scheme->bits == 8 ? 4 : 8)};
  }
  constexpr std::int64_t max_size = std::int64_t{1} << 31;
  if (sizes[0] < 1 || sizes[1] < 1 || sizes[0] >= max_size || sizes[1] >= max_size) {
    module.refuse(fmt::format("has a .weight_shape of [{}, {}]", sizes[0], sizes[1]));
  }
  weight.rows = sizes[0];
  weight.cols = sizes[1];
}

// Scales [rows, groups], [rows, 1], [rows] or a single one.
void read_row_scales(const QuantizedModule& module, IntegerWeight& weight) {
  weight.scales = module.get_scales(".weight_scale");
  const std::vector<std::int64_t>& shape = weight.scales.shape;
  const bool single = std::ranges::all_of(shape, [](std::int64_t size) { return size == 1; });
  weight.groups = shape.size() == 2 && !single ? shape[1] : 1;
  if (single || shape == std::vector{weight.rows}) return;
  module.require_shape(".weight_scale", {weight.rows, weight.groups});
  if (weight.groups < 1 || weight.groups > weight.cols) module.refuse("has more groups than columns");
}

StoredTensor join_packed(const QuantizedModule& module, const QuantizationConfig& config,
                         FoundScheme& found) {
  IntegerWeight weight = {.packing = Packing::compressed, .codes = get_words(module, ".weight_packed")};
  read_weight_shape(module, config, weight);
  const std::int64_t words = weight.codes.shape[1];
  weight.bits = words == rounded_up(weight.cols, 4) ? 8 : 4;
  if (words != rounded_up(weight.cols * weight.bits, 32)) {
    module.refuse_layout(fmt::format("has {} words for {} columns", words, weight.cols),
                         "only 4 and 8 bits are read: the packing of other widths has changed over time");
  }
  module.require_shape(".weight_packed", {weight.rows, words});
  read_row_scales(module, weight);
  if (module.find(".weight_zero_point") != nullptr) {
    weight.zeros = get_words(module, ".weight_zero_point");
    module.require_shape(".weight_zero_point", {rounded_up(weight.rows * weight.bits, 32), weight.groups});
  }
  const bool symmetric = !weight.zeros;
  weight.group_of_column =
      groups_of_columns(module, ".weight_g_idx", weight, group_size(module, config, weight));
  found = {.bits = weight.bits, .cols = weight.cols, .groups = weight.groups};
  return finish(module, std::move(weight), symmetric);
}

// W8A8 and bitsandbytes' int8.
StoredTensor join_bytes(const QuantizedModule& module, FoundScheme& found) {
  IntegerWeight weight = {.packing = Packing::bytes, .bits = 8, .codes = module.get(".weight")};
  if (weight.codes.shape.size() != 2 || weight.codes.shape[0] < 1 || weight.codes.shape[1] < 1) {
    module.refuse(fmt::format("has weights of shape [{}], expected two dimensions",
                              fmt::join(weight.codes.shape, ", ")));
  }
  weight.rows = weight.codes.shape[0];
  weight.cols = weight.codes.shape[1];
  if (module.find(".SCB") != nullptr) {
    weight.scales = module.get_scales(".SCB");
    weight.scale_divisor = 127.0f;
    module.require_shape(".SCB", {weight.rows});
    if (const StoredTensor* format = module.find(".weight_format")) {
      std::byte kind{0};
      if (format->bytes == 1) format->read(0, {&kind, 1});
      if (kind != std::byte{0}) {
        module.refuse_layout("has a .weight_format other than 0",
                             "its rows are laid out for one kind of GPU");
      }
    }
  } else {
    read_row_scales(module, weight);
    if (module.find(".weight_zero_point") != nullptr) {
      weight.zeros = module.get(".weight_zero_point");
      if (module.type_of(".weight_zero_point") != "I8" || weight.zeros->shape != weight.scales.shape) {
        module.refuse("has zero points of another type or shape than its scales");
      }
    }
  }
  const bool symmetric = !weight.zeros;
  weight.group_of_column = groups_of_columns(module, "", weight, rounded_up(weight.cols, weight.groups));
  found = {.bits = 8, .cols = weight.cols, .groups = weight.groups};
  return finish(module, std::move(weight), symmetric);
}

}  // namespace

StoredTensor join_integers(const QuantizedModule& module, const QuantizationConfig& config,
                           FoundScheme& found) {
  if (module.find(".weight_packed") != nullptr) return join_packed(module, config, found);
  if (module.find(".qweight") == nullptr) return join_bytes(module, found);
  return config.method == QuantMethod::awq ? join_awq(module, found) : join_gptq(module, config, found);
}

}  // namespace inferno
