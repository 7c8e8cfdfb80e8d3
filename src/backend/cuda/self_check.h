// Whether a device computes correctly: one small product with each kind of kernel, compared with the CPU.
#pragma once

#include <optional>
#include <string>

namespace inferno::cuda {

// What went wrong; nullopt when the results are right. Never throws.
std::optional<std::string> self_check(int device);

}  // namespace inferno::cuda
