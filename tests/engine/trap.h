// A kernel that ends in a trap: afterwards no call to the device succeeds in this process.
#pragma once

namespace inferno::testing {

void trap_on_device();

}  // namespace inferno::testing
