// What the choice of a kernel and its launch shape need to know about a GPU. Plain numbers, so that the
// choice can be made, printed and tested for any device on a machine that has none.
#pragma once

namespace inferno::cuda {

struct DeviceTraits {
  int multiprocessors = 1;
  int shared_limit = 48 << 10;  // bytes of shared memory that a block may ask for
  bool overlaps = false;        // a kernel may start while the previous one ends (Hopper and later)
  int max_cluster = 1;          // blocks of a cluster, as max_decode_cluster() found; 1 before Hopper
  bool warp_groups = false;     // wgmma: Hopper, in a build for sm_90a
};

}  // namespace inferno::cuda
