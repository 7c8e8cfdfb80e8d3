// Which NVIDIA GPUs there are and, if none can be used, exactly why. Asks the driver library that is found
// at run time, so it needs no CUDA at build time and belongs to every build; only self_check() needs CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace inferno::cuda {

struct GpuDevice {
  int index = 0;  // as the driver counts, after CUDA_VISIBLE_DEVICES
  std::string name = {};
  int major = 0, minor = 0;  // compute capability
  std::uint64_t total_bytes = 0;
  // Known only if the management library (NVML) is installed and answers.
  std::optional<std::uint64_t> free_bytes = {};
  std::optional<std::uint64_t> memory_errors = {};  // uncorrected ECC errors since the driver was loaded
  bool is_slice = false;                            // a MIG instance: part of a GPU
};

enum class DriverState {
  ready,           // devices has at least one
  no_hardware,     // no driver library and no NVIDIA GPU on the PCI bus
  no_library,      // a GPU is there, libcuda.so.1 is not
  broken_library,  // libcuda.so.1 cannot be loaded, or is a stub
  no_device,       // the driver runs and knows no GPU
  hidden,          // CUDA_VISIBLE_DEVICES hides every GPU
  no_permission,   // no permission to open /dev/nvidia*
  mismatch,        // kernel module and library have different versions
  not_ready,       // the system (fabric manager, MPS) is still starting or has failed
  failed,          // any other code
};

struct GpuProbe {
  DriverState state = DriverState::no_hardware;
  int code = 0;                     // what cuInit or a later call returned, when it was not 0
  std::string detail = {};          // the message of the loader or the driver
  int cuda_version = 0;             // the newest CUDA this driver runs: 13000 is 13.0; 0 when unknown
  std::string driver_version = {};  // "580.95.05"; empty when unknown
  std::vector<GpuDevice> devices = {};
};

// Tests replace these.
struct ProbeSources {
  std::string driver_library = "libcuda.so.1";
  std::string management_library = "libnvidia-ml.so.1";
  std::filesystem::path root = "/";                 // of /dev, /proc and /sys
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES
};

// Never throws for anything it finds. Loads the driver and leaves it loaded.
GpuProbe probe(const ProbeSources& sources);

// Why no device can be used, and what to do about it; empty when the state is ready or there is no hardware.
Advice explain(const GpuProbe& probe, const ProbeSources& sources);

// What this program was compiled for.
struct CudaBuild {
  int toolkit_version = 0;                      // 13000 is 13.0; 0: built without the CUDA backend
  std::vector<std::string> architectures = {};  // "90a", "80"
};

// "90a" is machine code for 9.0 alone; "80" runs on 8.0, 8.6 and 8.9.
bool runs_on(std::string_view architecture, int major, int minor);

// Why a device that the driver offers is of no use to this program; nullopt when it is.
std::optional<Advice> why_unusable(const GpuDevice& device, const GpuProbe& probe, const CudaBuild& build);

// Whether a device computes correctly: one small product with each kind of kernel, compared with the CPU.
// What went wrong; nullopt if the results are right. Never throws.
std::optional<std::string> self_check(int device);

}  // namespace inferno::cuda
