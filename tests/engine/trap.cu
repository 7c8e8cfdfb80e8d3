#include "engine/trap.h"

namespace inferno::testing {
namespace {

__global__ void trap() {
  __trap();
}

}  // namespace

// One thread is enough: the error is reported by the next call to the device.
void trap_on_device() {
  trap<<<1, 1>>>();
}

}  // namespace inferno::testing
