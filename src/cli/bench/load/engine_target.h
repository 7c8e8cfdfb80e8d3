// An engine in this process as the target of a load test: what its kernels and its scheduling do under load,
// without a server and a network.
#pragma once

#include <functional>
#include <memory>

#include "cli/bench/load/load_run.h"
#include "engine/engine.h"

namespace inferno::load {

// `request` makes the request number i of the plan. `engine` must outlive the target.
std::unique_ptr<Target> make_engine_target(Engine& engine,
                                           std::function<GenerationRequest(std::size_t)> request);

// What the engine did between two snapshots of its statistics.
EngineFigures figures_between(const EngineStats& before, const EngineStats& after);

}  // namespace inferno::load
