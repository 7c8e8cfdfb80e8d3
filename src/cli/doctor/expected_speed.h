// How fast a device decodes: reading the weights once for each token is what takes the time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"

namespace inferno {

inline constexpr std::size_t bandwidth_sample = std::size_t{1} << 30;

// Bytes/s that the device reads, measured now. `sample` bytes are read several times on a CPU; with little
// memory fewer.
double bandwidth_of(Backend& backend, std::size_t sample = bandwidth_sample);

// Tokens/s of one sequence for a model that reads `bytes_per_token`.
double expected_speed(const DeviceInfo& device, double bandwidth, std::uint64_t bytes_per_token);

}  // namespace inferno
