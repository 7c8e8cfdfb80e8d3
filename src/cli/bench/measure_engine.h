// Timing generation through the engine, as users meet it: streams submitted together, tokens read as they
// come.
#pragma once

#include <memory>

#include "cli/bench/measure.h"
#include "engine/engine.h"

namespace inferno {

class EngineMeasurer {
 public:
  EngineMeasurer(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder, int max_streams,
                 Sampling sampling);

  // From a prompt of one token. The clock starts with the first token of each run.
  Measurement generate(int streams, int tokens, int repeat, double weight_bytes);

 private:
  double run(int streams, int tokens);

  int vocab_;
  Sampling sampling_;
  Engine engine_;
};

}  // namespace inferno
