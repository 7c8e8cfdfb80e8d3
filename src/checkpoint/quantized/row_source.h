// Quantized tensors of a file as rows of blocks (tensor/blocks): the codes, scales and zero points of a
// module are separate tensors, often packed along another dimension, and become blocks while they are read.
// No value is rounded. The tensors' shapes have been checked before; scales and codes are checked here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "tensor/stored_tensor.h"

namespace inferno {

// How the words of a packed tensor hold its codes.
enum class Packing {
  gptq,        // [cols / per word, rows], zero points [groups, rows / per word]
  awq,         // [cols, rows / 8] with AWQ's order of eight; zero points likewise
  compressed,  // [rows, cols / per word], zero points [rows / per word, groups]
  bytes,       // signed bytes [rows, cols], zero points like the scales
};

struct IntegerWeight {
  std::string name = {};    // of the module, for messages
  std::string origin = {};  // its file
  WeightFormat format = WeightFormat::f32;
  Packing packing = Packing::gptq;
  int bits = 4;
  std::int64_t rows = 0, cols = 0, groups = 1;
  StoredTensor codes = {}, scales = {};
  std::optional<StoredTensor> zeros = {};  // without: the middle of the codes
  bool zeros_less_one = false;
  bool scales_by_group = false;                    // scales are [groups, rows] and not [rows, groups]
  float scale_divisor = 1.0f;                      // of every scale
  std::vector<std::int32_t> group_of_column = {};  // of the file's columns
  std::vector<std::int32_t> column_order = {};     // block column c is the file's column_order[c]; empty: c
};
std::shared_ptr<const ByteSource> integer_rows(IntegerWeight weight);

struct Fp8Weight {
  std::string name = {}, origin = {};
  WeightFormat format = WeightFormat::f32;
  std::int64_t rows = 0, cols = 0;
  StoredTensor codes = {};            // [rows, cols], E4M3
  StoredTensor scales = {};           // [scale_rows, scale_cols]
  bool scales_are_exponents = false;  // E8M0
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t block_rows = 1, block_cols = 1;  // of the weights under one scale
};
std::shared_ptr<const ByteSource> fp8_rows(Fp8Weight weight);

struct Nvfp4Weight {
  std::string name = {}, origin = {};
  WeightFormat format = WeightFormat::f32;
  std::int64_t rows = 0, cols = 0;
  StoredTensor codes = {};   // [rows, cols / 2], the even column in the low half
  StoredTensor scales = {};  // [rows, cols / 16], E4M3
  StoredTensor factor = {};  // one float
  bool is_divisor = false;
};
std::shared_ptr<const ByteSource> nvfp4_rows(Nvfp4Weight weight);

// The same tensor of E8M0 exponents; reading one that is not a number is Error{corrupt} naming the module.
StoredTensor checked_exponents(StoredTensor exponents, std::string origin, std::string name);

// bitsandbytes: blocks run over the ends of rows.
struct Table4Weight {
  std::string name = {}, origin = {};
  WeightFormat format = WeightFormat::f32;
  std::int64_t rows = 0, cols = 0;
  std::int64_t block = 64;   // elements under one scale
  StoredTensor codes = {};   // the first of two in the high half
  StoredTensor scales = {};  // float32, or bytes that are indices into the nested table
  std::optional<StoredTensor> nested_scales = {}, nested_table = {};
  std::int64_t nested_block = 256;
  float nested_offset = 0.0f;
};
std::shared_ptr<const ByteSource> table4_rows(Table4Weight weight);

}  // namespace inferno
