// What a checkpoint's configuration says about its quantized weights: "quantization_config" of config.json,
// or the file beside it that older tools wrote. The tensors decide what is quantized and how
// (quantized_tensors.h); this says how packed words are to be read and what to check the tensors against.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/quantized/module_pattern.h"

namespace inferno {

// Who wrote the checkpoint, as far as it changes the names or the meaning of tensors.
enum class QuantMethod {
  gptq,  // also auto-round's GPTQ packing
  awq,   // also auto-round's AWQ packing
  fp8,   // transformers' "fp8", AutoFP8, Mistral, fbgemm_fp8
  mxfp8,
  compressed_tensors,
  modelopt,
  bitsandbytes,
  mxfp4,  // gpt-oss
};

// How the elements of a weight are coded.
enum class WeightCoding { integers, fp8, mxfp8, nvfp4, mxfp4, table4 };

// What a config says of the weights of some modules. Numbers that it leaves open are 0.
struct QuantScheme {
  std::string field = {};  // of the config, for messages
  std::optional<WeightCoding> coding = {};
  int bits = 0;
  int group = 0;                       // columns under one scale; -1: a whole row
  int block_rows = 0, block_cols = 0;  // of a two-dimensional block
  bool is_symmetric = false;           // all zero points are the middle of the codes
  bool is_left_out = false;            // stays float
};

class QuantizationConfig {
 public:
  QuantMethod method = QuantMethod::gptq;
  std::string origin;              // the file
  std::string title;               // "AWQ", "compressed-tensors pack-quantized"
  bool zeros_less_one = false;     // GPTQ's first version stores zero points less one
  std::vector<std::string> notes;  // what the config asks for and Inferno does not do, one sentence each

  // The scheme of a module, e.g. "model.layers.0.mlp.up_proj"; nullopt if the config says nothing about it.
  std::optional<QuantScheme> scheme_of(std::string_view module) const;

  struct Rule {
    enum class Match { pattern, whole_name, components, wildcard, linear };
    Match match = Match::linear;
    std::string text;
    std::optional<ModulePattern> pattern;
    QuantScheme scheme;
    bool matches(std::string_view module) const;
  };
  std::vector<Rule> rules;  // the first that fits counts
};

// nullopt if the checkpoint is not quantized. Error{unsupported} for methods and layouts that Inferno does
// not read, with the file, the field, its value, the reason and what to use instead; Error{corrupt} if two
// files contradict each other. `config` marks the keys of the description as read.
std::optional<QuantizationConfig> read_quantization_config(const std::filesystem::path& directory,
                                                           const Config& config);

// The same for the text of the description alone, a JSON object.
QuantizationConfig parse_quantization_config(std::string_view json, const std::string& origin);

}  // namespace inferno
