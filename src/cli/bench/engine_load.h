// `inferno bench --load`: puts the loads of `bench --serve` on an engine in this process.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "cli/bench/load/load_levels.h"
#include "model/decoder.h"

namespace inferno {

// How many sequences an engine runs at once for these loads, unless `parallel` says it.
int parallel_for(const load::LoadOptions& options, int parallel);
// Tokens that the longest request of these loads has.
int context_for(const std::vector<load::Level>& levels);

struct EngineLoad {
  const load::LoadOptions& options;
  const std::vector<load::Level>& levels;
  std::uint64_t seed = 0;
  int parallel = 1;
  std::string title;            // of a plot
  nlohmann::ordered_json json;  // where the figures come from
};

// Prints the result on stdout. Exit{1} if no request succeeded.
void run_engine_load(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder,
                     const EngineLoad& load);

}  // namespace inferno
