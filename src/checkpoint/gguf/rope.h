// What GGUF says about heads and rotary positions, in the words of config.json. GGUF counts rotated
// dimensions where Hugging Face gives their share, and keeps the factors of some scalings in tensors.
#pragma once

#include <string_view>

#include "checkpoint/checkpoint.h"

namespace inferno {

struct GgufRopeSource {
  std::string_view architecture;
  std::string_view origin;
  const Checkpoint& tensors;
};

// Error{corrupt} when a tensor of factors is not a short list of finite, positive numbers.
//
// "rope_freqs.weight", which is what llama3 scaling becomes, is given as "rope_scaling.rope_type" =
// "freq_factors" with "rope_scaling.freq_factors": each pair's frequency is divided by its factor.
void settle_gguf_rope(Config::Values& values, const GgufRopeSource& source);

}  // namespace inferno
