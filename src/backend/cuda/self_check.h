// Whether a device computes: one small product with each kind of kernel, compared with the CPU's arithmetic.
#pragma once

#include <optional>
#include <string>

namespace inferno::cuda {

// What went wrong; nullopt when the results are right. Never throws.
std::optional<std::string> self_check(int device);

}  // namespace inferno::cuda
