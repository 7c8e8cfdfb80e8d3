// One quantized module: its tensors by their role, with messages that name it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint/quantized/quantization_config.h"
#include "checkpoint/safetensors/entries.h"

namespace inferno {

// What the tensors of a module say about it, for the comparison with the config.
struct FoundScheme {
  WeightCoding coding = WeightCoding::integers;
  int bits = 0;
  std::int64_t cols = 0, groups = 0;  // of integers
};

struct QuantizedModule {
  std::string name;                                           // "model.layers.0.mlp.up_proj"
  std::string origin;                                         // path of the file with its codes
  std::map<std::string_view, const SafetensorsEntry*> parts;  // by suffix: ".qweight"

  const StoredTensor* find(std::string_view suffix) const;
  // Error{corrupt} if it is missing.
  const StoredTensor& get(std::string_view suffix) const;
  // Floats: F32, F16 or BF16. Error{unsupported} naming another type.
  const StoredTensor& get_scales(std::string_view suffix) const;
  std::string_view type_of(std::string_view suffix) const;  // "" if it is missing

  // Error{corrupt}: "FILE: the quantized module "X" PROBLEM".
  [[noreturn]] void refuse(std::string_view problem) const;
  // Error{unsupported}, with what to use instead.
  [[noreturn]] void refuse_layout(std::string_view problem, std::string_view why) const;
  // refuse() unless the tensor has this shape.
  void require_shape(std::string_view suffix, const std::vector<std::int64_t>& expected) const;
};

// The weight of a module with integer codes, or with narrow floats. Each checks every shape and reports what
// it found.
StoredTensor join_integers(const QuantizedModule& module, const QuantizationConfig& config,
                           FoundScheme& found);
StoredTensor join_floats(const QuantizedModule& module, const QuantizationConfig& config, FoundScheme& found);

}  // namespace inferno
