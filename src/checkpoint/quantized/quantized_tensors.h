// Finds the quantized modules of a safetensors checkpoint and makes one weight of the tensors of each.
#pragma once

#include <filesystem>

#include "checkpoint/quantized/quantization_config.h"
#include "checkpoint/safetensors/entries.h"

namespace inferno {

// Replaces the tensors of every quantized module (codes, scales, zero points) by one, "X.weight", in a block
// format, and removes scales of activations, which nothing reads, and those of FP8 caches, which are
// returned. The tensors decide which modules are quantized and how. Error{corrupt} naming the module if
// tensors are missing or do not fit together, or if they contradict `config`; Error{unsupported} for layouts
// that Inferno does not read.
SafetensorsEntries join_quantized(SafetensorsEntries& entries, const std::filesystem::path& directory,
                                  const QuantizationConfig& config);

// Error{corrupt} if there are packed tensors, for a checkpoint without a description of them.
void refuse_undescribed(const SafetensorsEntries& entries, const std::filesystem::path& directory);

}  // namespace inferno
