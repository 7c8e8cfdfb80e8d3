// `inferno doctor --self-test`: whether this machine computes correct results.
#pragma once

#include "cli/doctor/doctor.h"
#include "cli/environment.h"
#include "service/loading/device.h"

namespace inferno::doctor {

// Runs the built-in model and compares its tokens with the reference. Any failure is a finding, not an
// exception.
Finding check_device(const DeviceOptions& device, const Environment& environment);

}  // namespace inferno::doctor
