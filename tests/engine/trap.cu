#include "engine/trap.h"

namespace inferno::testing {
namespace {

__global__ void trap() {
  __trap();
}

}  // namespace

// One thread is enough; errors show up at whoever asks the device next.
void trap_on_device() {
  trap<<<1, 1>>>();
}

}  // namespace inferno::testing
