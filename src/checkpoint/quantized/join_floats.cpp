// Weights of narrow floats: FP8, MXFP8, NVFP4, MXFP4 and the four-bit tables of bitsandbytes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/checked.h"
#include "checkpoint/config_json.h"
#include "checkpoint/quantized/quantized_module.h"
#include "checkpoint/quantized/row_source.h"
#include "checkpoint/safetensors/mxfp4_pair.h"

namespace inferno {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t rounded_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

StoredTensor made(WeightFormat format, std::int64_t rows, std::int64_t cols,
                  std::shared_ptr<const ByteSource> source) {
  const std::uint64_t bytes = source->size();
  return {.format = format,
          .shape = {rows, cols},
          .source = std::move(source),
          .offset = 0,
          .bytes = bytes,
          .column_order = nullptr,
          .is_joined = true};
}

// A matrix of codes, `per_byte` columns in a byte.
void require_matrix(const QuantizedModule& module, const StoredTensor& codes) {
  if (codes.shape.size() == 2 && codes.shape[0] > 0 && codes.shape[1] > 0) return;
  module.refuse_layout(fmt::format("has weights of shape [{}]", fmt::join(codes.shape, ", ")),
                       "quantized weights are read as matrices, one for each module");
}

void require_bytes(const QuantizedModule& module, std::string_view suffix) {
  if (module.type_of(suffix) == "U8") return;
  module.refuse(fmt::format("has {} of type {}, expected U8", suffix, module.type_of(suffix)));
}

std::string_view scale_suffix(const QuantizedModule& module) {
  for (const std::string_view suffix : {".weight_scale", ".weight_scale_inv", ".scale"}) {
    if (module.find(suffix) != nullptr) return suffix;
  }
  module.refuse("has FP8 codes, but no scale");
}

bool is_exponent_type(std::string_view type) {
  return type == "U8" || type == "F8_E8M0";
}

// Cuts the weight into blocks by the config, or as the shape of the scales says.
void set_scale_grid(const QuantizedModule& module, std::string_view suffix, const QuantizationConfig& config,
                    Fp8Weight& weight) {
  Shape shape = weight.scales.shape;
  if (shape.size() == 4 && shape[1] == 1 && shape[3] == 1)
    shape = {shape[0], shape[2]};  // modelopt's FP8_PB_WO
  const auto scheme = config.scheme_of(module.name);
  const auto use = [&](std::int64_t rows, std::int64_t cols) {
    weight.block_rows = rows;
    weight.block_cols = cols;
    weight.scale_rows = rounded_up(weight.rows, rows);
    weight.scale_cols = rounded_up(weight.cols, cols);
  };
  if (scheme && scheme->block_rows > 0) {
    use(scheme->block_rows, scheme->block_cols);
    if (shape == Shape{weight.scale_rows, weight.scale_cols}) return;
    module.refuse(fmt::format("has {} of shape [{}], but {}: {} means [{}, {}] for weights of shape [{}, {}]",
                              suffix, fmt::join(shape, ", "), config.origin, scheme->field, weight.scale_rows,
                              weight.scale_cols, weight.rows, weight.cols));
  }
  if (weight.scales_are_exponents && shape == Shape{weight.rows, weight.cols / 32} && weight.cols % 32 == 0) {
    return use(1, 32);
  }
  if (std::ranges::all_of(shape, [](std::int64_t size) { return size == 1; }))
    return use(weight.rows, weight.cols);
  if (shape == Shape{weight.rows} || shape == Shape{weight.rows, 1}) return use(1, weight.cols);
  for (const std::int64_t block : {128, 64, 32}) {
    use(block, block);
    if (shape == Shape{weight.scale_rows, weight.scale_cols}) return;
  }
  module.refuse(fmt::format("has {} of shape [{}], which does not fit weights of shape [{}, {}]", suffix,
                            fmt::join(shape, ", "), weight.rows, weight.cols));
}

StoredTensor join_fp8(const QuantizedModule& module, const QuantizationConfig& config, FoundScheme& found) {
  Fp8Weight weight;
  weight.name = module.name;
  weight.origin = module.origin;
  weight.codes = module.get(".weight");
  require_matrix(module, weight.codes);
  weight.rows = weight.codes.shape[0];
  weight.cols = weight.codes.shape[1];
  const std::string_view suffix = scale_suffix(module);
  weight.scales_are_exponents = is_exponent_type(module.type_of(suffix));
  weight.scales = weight.scales_are_exponents ? module.get(suffix) : module.get_scales(suffix);
  set_scale_grid(module, suffix, config, weight);
  const bool one_block = weight.scale_cols == 1;
  const auto fits = [&](std::int64_t elements) {
    return weight.cols % elements == 0 && (one_block || weight.block_cols % elements == 0);
  };
  if (!fits(32)) {
    module.refuse_layout(fmt::format("has {} columns under scales of {}", weight.cols, weight.block_cols),
                         "FP8 weights are read in multiples of 32 columns");
  }
  weight.format = fits(128) ? WeightFormat::fp8_128 : WeightFormat::fp8_32;
  const bool mx = weight.scales_are_exponents && weight.block_rows == 1 && weight.block_cols == 32;
  found = {.coding = mx ? WeightCoding::mxfp8 : WeightCoding::fp8, .bits = 8};
  const WeightFormat format = weight.format;
  const std::int64_t rows = weight.rows, cols = weight.cols;
  return made(format, rows, cols, fp8_rows(std::move(weight)));
}

StoredTensor join_nvfp4(const QuantizedModule& module, FoundScheme& found) {
  Nvfp4Weight weight;
  const bool compressed = module.find(".weight_packed") != nullptr;
  weight.name = module.name;
  weight.origin = module.origin;
  weight.codes = module.get(compressed ? ".weight_packed" : ".weight");
  weight.scales = module.get(".weight_scale");
  weight.factor = module.get_scales(compressed ? ".weight_global_scale" : ".weight_scale_2");
  weight.is_divisor = compressed;
  require_bytes(module, compressed ? ".weight_packed" : ".weight");
  require_matrix(module, weight.codes);
  weight.rows = weight.codes.shape[0];
  weight.cols = weight.codes.shape[1] * 2;
  if (module.type_of(".weight_scale") != "F8_E4M3")
    module.refuse("has NVFP4 codes, but scales of another type");
  module.require_shape(".weight_scale", {weight.rows, weight.cols / 16});
  if (weight.factor.bytes != block_bytes(weight.factor.format)) {
    module.refuse("has a factor for the whole tensor that is not one number");
  }
  if (weight.cols % 32 != 0) {
    module.refuse_layout(fmt::format("has {} columns", weight.cols),
                         "NVFP4 weights are read in multiples of 32 columns");
  }
  weight.format = weight.cols % 64 == 0 ? WeightFormat::nvfp4_64 : WeightFormat::nvfp4_32;
  found = {.coding = WeightCoding::nvfp4, .bits = 4};
  const WeightFormat format = weight.format;
  const std::int64_t rows = weight.rows, cols = weight.cols;
  return made(format, rows, cols, nvfp4_rows(std::move(weight)));
}

StoredTensor join_mxfp4(const QuantizedModule& module, FoundScheme& found) {
  const StoredTensor& codes = module.get(".weight_packed");
  require_bytes(module, ".weight_packed");
  require_matrix(module, codes);
  const std::int64_t rows = codes.shape[0], cols = codes.shape[1] * 2;
  if (cols % 32 != 0) module.refuse(fmt::format("has {} columns, expected a multiple of 32", cols));
  if (!is_exponent_type(module.type_of(".weight_scale"))) {
    module.refuse("has four-bit floats with neither a factor for the whole tensor nor exponents as scales");
  }
  module.require_shape(".weight_scale", {rows, cols / 32});
  found = {.coding = WeightCoding::mxfp4, .bits = 4};
  return made(
      WeightFormat::mxfp4, rows, cols,
      interleave_mxfp4(codes, checked_exponents(module.get(".weight_scale"), module.origin, module.name)));
}

// -- bitsandbytes --

struct QuantState {
  std::string type;
  std::int64_t rows = 0, cols = 0, block = 0, nested_block = 0;
  float nested_offset = 0.0f;
};

QuantState read_state(const QuantizedModule& module, std::string_view suffix) {
  constexpr std::uint64_t max_state = 65536;
  const StoredTensor& stored = module.get(suffix);
  if (stored.bytes > max_state) module.refuse("has a quant_state that is too long");
  std::string text(stored.bytes, '\0');
  stored.read(0, std::as_writable_bytes(std::span(text)));
  const Config state = parse_config(text, module.origin + ": " + module.name + std::string(suffix));
  QuantState out;
  out.type = state.text("quant_type", "");
  out.block = state.positive("blocksize");
  out.nested_block = state.positive("nested_blocksize", 256);
  out.nested_offset = state.number("nested_offset", 0.0f);
  const std::vector<float> shape = state.numbers("shape");
  constexpr float max_size = 0x1p24f;  // where a float still holds every whole number
  for (const float size : shape) {
    if (!(size >= 1.0f && size <= max_size) || std::trunc(size) != size)
      module.refuse("has an impossible shape");
  }
  if (shape.size() != 2) module.refuse("has a quant_state whose shape is not that of a matrix");
  out.rows = static_cast<std::int64_t>(shape[0]);
  out.cols = static_cast<std::int64_t>(shape[1]);
  return out;
}

// The table of the file must be the one that the format means.
void require_table(const QuantizedModule& module, std::span<const float> expected) {
  const StoredTensor& stored = module.get_scales(".weight.quant_map");
  module.require_shape(".weight.quant_map", {16});
  std::vector<float> table(16);
  std::vector<std::byte> bytes(stored.bytes);
  stored.read(0, bytes);
  decode(stored.format, bytes, table);
  if (!std::ranges::equal(table, expected)) {
    module.refuse_layout("has a quant_map of its own", "only the tables of NF4 and FP4 are read");
  }
}

void add_nested(const QuantizedModule& module, Table4Weight& weight, const QuantState& state) {
  if (weight.scales.format != WeightFormat::u8) {
    (void)module.get_scales(".weight.absmax");
    return;
  }
  weight.nested_scales = module.get_scales(".weight.nested_absmax");
  weight.nested_table = module.get_scales(".weight.nested_quant_map");
  weight.nested_block = state.nested_block;
  weight.nested_offset = state.nested_offset;
  const std::int64_t scales = rounded_up(weight.rows * weight.cols, weight.block);
  module.require_shape(".weight.nested_absmax", {rounded_up(scales, state.nested_block)});
  module.require_shape(".weight.nested_quant_map", {256});
}

StoredTensor join_table4(const QuantizedModule& module, FoundScheme& found) {
  const bool nf4 = module.find(".weight.quant_state.bitsandbytes__nf4") != nullptr;
  const QuantState state = read_state(
      module, nf4 ? ".weight.quant_state.bitsandbytes__nf4" : ".weight.quant_state.bitsandbytes__fp4");
  require_table(module, nf4 ? blocks::nf4_table : blocks::fp4_table);
  Table4Weight weight;
  weight.name = module.name;
  weight.origin = module.origin;
  weight.rows = state.rows;
  weight.cols = state.cols;
  weight.block = state.block;
  weight.codes = module.get(".weight");
  weight.scales = module.get(".weight.absmax");
  const std::int64_t elements = weight.rows * weight.cols;
  if (elements % 2 != 0 || weight.codes.bytes != static_cast<std::uint64_t>(elements / 2)) {
    module.refuse(fmt::format("has {} bytes of codes for a matrix of [{}, {}]", weight.codes.bytes,
                              weight.rows, weight.cols));
  }
  module.require_shape(".weight.absmax", {rounded_up(elements, weight.block)});
  add_nested(module, weight, state);
  if (weight.block % 32 != 0 || weight.cols % 32 != 0) {
    module.refuse_layout(fmt::format("has {} columns in blocks of {}", weight.cols, weight.block),
                         "four-bit tables are read in multiples of 32 columns");
  }
  const bool wide = weight.block % 64 == 0 && weight.cols % 64 == 0;
  weight.format = nf4 ? (wide ? WeightFormat::nf4_64 : WeightFormat::nf4_32)
                      : (wide ? WeightFormat::fp4_64 : WeightFormat::fp4_32);
  found = {.coding = WeightCoding::table4, .bits = 4};
  const WeightFormat format = weight.format;
  return made(format, state.rows, state.cols, table4_rows(std::move(weight)));
}

}  // namespace

StoredTensor join_floats(const QuantizedModule& module, const QuantizationConfig& config,
                         FoundScheme& found) {
  if (module.find(".weight.absmax") != nullptr) return join_table4(module, found);
  if (module.find(".weight_packed") != nullptr && module.find(".weight_global_scale") == nullptr) {
    return join_mxfp4(module, found);
  }
  if (module.find(".weight_packed") != nullptr || module.type_of(".weight") == "U8") {
    return join_nvfp4(module, found);
  }
  return join_fp8(module, config, found);
}

}  // namespace inferno
