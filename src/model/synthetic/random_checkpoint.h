// A checkpoint without files: the tensors that a configuration asks for, filled with random weights when
// read. It goes through the ordinary loader, so that measurements agree with those of a real file.
#pragma once

#include <memory>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace inferno {

struct RandomWeights {
  WeightFormat dense = WeightFormat::bf16;    // matrices, embedding and head
  WeightFormat experts = WeightFormat::bf16;  // of a mixture
  std::uint64_t seed = 1;
  // Standard deviation of the routers' biases: at 2 a few experts take most tokens. 0: as other biases.
  float router_skew = 0.0f;
};

// Matrices whose rows are not whole blocks of the given format are stored as q8_0, or as bf16 if q8_0 does
// not divide them either. Error{unsupported} for an unknown architecture, Error{invalid_request} for a skew
// if no router has a bias.
std::unique_ptr<Checkpoint> random_checkpoint(Config config, std::string_view type,
                                              const RandomWeights& weights);

}  // namespace inferno
