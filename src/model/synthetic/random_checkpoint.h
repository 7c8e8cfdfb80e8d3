// A checkpoint that no file holds: the tensors a configuration asks for, filled with random weights when
// read. It takes the ordinary way through the loader, so that what is measured on it is what a file would
// give.
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

// Matrices whose rows are not whole blocks of the asked format are stored as q8_0, or bf16 where that does
// not divide them either. Error{unsupported} for a config whose architecture nobody knows,
// Error{invalid_request} for a skew where no router has a bias.
std::unique_ptr<Checkpoint> random_checkpoint(Config config, std::string_view type,
                                              const RandomWeights& weights);

}  // namespace inferno
