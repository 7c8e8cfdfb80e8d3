// Runs the built-in model and compares its words with those of the reference: whether this machine computes
// what it should.
#pragma once

#include "cli/doctor/doctor.h"
#include "cli/model_options.h"

namespace inferno::doctor {

// A finding, never an exception: what fails is what was to be found out.
Finding self_test(const DeviceOptions& device, const Environment& environment);

}  // namespace inferno::doctor
