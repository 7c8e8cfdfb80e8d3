#include "cli/doctor/expected_speed.h"

#include <algorithm>

#include "backend/cpu/host.h"

namespace inferno {

double bandwidth_of(Backend& backend, std::size_t sample) {
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  const double of_device = backend.read_bandwidth();
  if (of_device > 0.0) return of_device;
  // With little memory, a figure that the CPU's caches may improve is better than none.
  const DeviceInfo device = backend.info();
  return cpu::read_bandwidth(device.threads,
                             device.free_bytes > 4 * gibibyte ? sample : std::min(sample, gibibyte / 8));
}

double expected_speed(const DeviceInfo& device, double bandwidth, std::uint64_t bytes_per_token) {
  // The share of the measured bandwidth that decoding reaches; see docs/benchmarks.md.
  const double usual_share = device.kernels.starts_with("sm_") ? 0.6 : 0.9;
  return usual_share * bandwidth / static_cast<double>(std::max<std::uint64_t>(bytes_per_token, 1));
}

}  // namespace inferno
