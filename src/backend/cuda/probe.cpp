#include "backend/cuda/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace inferno::cuda {
namespace {

// The parts of the driver's interface that are used here, declared by hand: its headers are not needed to
// build.
constexpr int no_error = 0;
constexpr int capability_major = 75, capability_minor = 76;  // CUdevice_attribute
constexpr int uncorrected = 1, since_start = 0;              // nvmlMemoryErrorType_t, nvmlEccCounterType_t

struct ManagementMemory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

class Library {
 public:
  explicit Library(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* message = dlerror();
      problem_ = message != nullptr ? message : "cannot be loaded";
    }
  }

  bool loaded() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }

  // Null when the library has no such function.
  template <class Function>
  Function* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;  // never closed: the driver keeps threads of its own that would lose their code
  std::string problem_;
};

struct Driver {
  explicit Driver(const Library& library)
      : init(library.find<int(unsigned)>("cuInit")),
        version(library.find<int(int*)>("cuDriverGetVersion")),
        count(library.find<int(int*)>("cuDeviceGetCount")),
        get(library.find<int(int*, int)>("cuDeviceGet")),
        name(library.find<int(char*, int, int)>("cuDeviceGetName")),
        total(library.find<int(std::size_t*, int)>("cuDeviceTotalMem_v2")),
        attribute(library.find<int(int*, int, int)>("cuDeviceGetAttribute")),
        bus(library.find<int(char*, int, int)>("cuDeviceGetPCIBusId")),
        error_name(library.find<int(int, const char**)>("cuGetErrorName")) {}

  bool complete() const {
    return init != nullptr && version != nullptr && count != nullptr && get != nullptr && name != nullptr &&
           total != nullptr && attribute != nullptr && bus != nullptr;
  }

  int (*init)(unsigned);
  int (*version)(int*);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*total)(std::size_t*, int);
  int (*attribute)(int*, int, int);
  int (*bus)(char*, int, int);
  int (*error_name)(int, const char**);
};

bool has_nvidia_hardware(const std::filesystem::path& root) {
  std::error_code ignored;
  const std::filesystem::directory_iterator devices(root / "sys/bus/pci/devices", ignored);
  for (const auto& device : devices) {
    std::string vendor, kind;
    std::ifstream(device.path() / "vendor") >> vendor;
    std::ifstream(device.path() / "class") >> kind;
    if (vendor == "0x10de" && kind.starts_with("0x03")) return true;  // a display or 3D controller
  }
  return std::filesystem::exists(root / "dev/nvidiactl", ignored);
}

bool is_forbidden(const std::filesystem::path& root) {
  for (const char* node : {"dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm"}) {
    if (access((root / node).c_str(), R_OK | W_OK) != 0 && errno == EACCES) return true;
  }
  return false;
}

// The driver's codes (CUresult) that have a cause of their own.
DriverState state_of(int code, const ProbeSources& sources) {
  switch (code) {
    case 34: return DriverState::broken_library;  // CUDA_ERROR_STUB_LIBRARY
    case 100:                                     // CUDA_ERROR_NO_DEVICE
      if (is_forbidden(sources.root)) return DriverState::no_permission;
      return sources.visible_devices ? DriverState::hidden : DriverState::no_device;
    case 304:  // CUDA_ERROR_OPERATING_SYSTEM
    case 999:  // CUDA_ERROR_UNKNOWN
      return is_forbidden(sources.root) ? DriverState::no_permission : DriverState::failed;
    case 802:
    case 805: return DriverState::not_ready;  // CUDA_ERROR_SYSTEM_NOT_READY, CUDA_ERROR_MPS_CONNECTION_FAILED
    case 803:
    case 804: return DriverState::mismatch;  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, …COMPAT_NOT_SUPPORTED_…
    default: return DriverState::failed;
  }
}

std::string name_of_code(const Driver& driver, int code) {
  const char* name = nullptr;
  if (driver.error_name != nullptr && driver.error_name(code, &name) == no_error && name != nullptr)
    return name;
  return fmt::format("code {}", code);
}

// What NVML adds: free memory without taking any, and memory errors.
void ask_management(const Library& library, const char* bus, GpuDevice& device) {
  using Handle = void*;
  auto* const by_bus = library.find<int(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
  auto* const memory = library.find<int(Handle, ManagementMemory*)>("nvmlDeviceGetMemoryInfo");
  auto* const errors =
      library.find<int(Handle, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors");
  Handle handle = nullptr;
  if (by_bus == nullptr || by_bus(bus, &handle) != no_error) return;
  ManagementMemory found = {};
  // A slice's memory is its own; the management library would answer for the whole GPU.
  if (memory != nullptr && !device.is_slice && memory(handle, &found) == no_error)
    device.free_bytes = found.free;
  unsigned long long count = 0;
  if (errors != nullptr && errors(handle, uncorrected, since_start, &count) == no_error)
    device.memory_errors = count;
}

std::optional<GpuDevice> describe(const Driver& driver, const Library& management, int index) {
  GpuDevice device = {.index = index};
  int handle = 0;
  std::array<char, 256> name = {};
  std::array<char, 32> bus = {};
  std::size_t total = 0;
  if (driver.get(&handle, index) != no_error || driver.name(name.data(), 255, handle) != no_error ||
      driver.total(&total, handle) != no_error ||
      driver.attribute(&device.major, capability_major, handle) != no_error ||
      driver.attribute(&device.minor, capability_minor, handle) != no_error) {
    return std::nullopt;
  }
  device.name = name.data();
  device.total_bytes = total;
  device.is_slice = device.name.find(" MIG ") != std::string::npos;
  if (driver.bus(bus.data(), 31, handle) == no_error) ask_management(management, bus.data(), device);
  return device;
}

// NVML starts even where CUDA does not; the version helps to explain why.
Library open_management(const ProbeSources& sources, std::string& driver_version) {
  Library library(sources.management_library);
  auto* const init = library.find<int()>("nvmlInit_v2");
  auto* const version = library.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  std::array<char, 96> text = {};
  if (init != nullptr && init() == no_error && version != nullptr && version(text.data(), 95) == no_error) {
    driver_version = text.data();
  } else {
    std::ifstream(sources.root / "sys/module/nvidia/version") >> driver_version;
  }
  return library;
}

void ask_driver(GpuProbe& result, const Driver& driver, const ProbeSources& sources) {
  const Library management = open_management(sources, result.driver_version);
  int count = 0;
  result.code = driver.init(0);
  if (driver.version(&result.cuda_version) != no_error) result.cuda_version = 0;
  if (result.code == no_error) result.code = driver.count(&count);
  if (result.code == no_error && count == 0) result.code = 100;
  if (result.code != no_error) {
    result.state = state_of(result.code, sources);
    result.detail = name_of_code(driver, result.code);
    return;
  }
  for (int index = 0; index < count; ++index) {
    if (auto device = describe(driver, management, index)) result.devices.push_back(std::move(*device));
  }
  result.state = result.devices.empty() ? DriverState::failed : DriverState::ready;
  if (result.devices.empty()) result.detail = "the driver lists devices but does not describe them";
}

std::string dotted(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

GpuProbe probe(const ProbeSources& sources) {
  GpuProbe result;
  const Library library(sources.driver_library);
  if (!library.loaded()) {
    const bool missing = library.problem().find("No such file") != std::string::npos;
    const bool hardware = has_nvidia_hardware(sources.root);
    result.detail = library.problem();
    result.state = !missing   ? DriverState::broken_library
                   : hardware ? DriverState::no_library
                              : DriverState::no_hardware;
    return result;
  }
  const Driver driver(library);
  if (!driver.complete()) {
    result.state = DriverState::broken_library;
    result.detail =
        fmt::format("{} lacks functions that every driver since CUDA 4 has", sources.driver_library);
    return result;
  }
  ask_driver(result, driver, sources);
  return result;
}

Advice explain(const GpuProbe& probe, const ProbeSources& sources) {
  const std::string install = "install the NVIDIA driver (Debian: apt install nvidia-driver), then restart";
  switch (probe.state) {
    case DriverState::ready:
    case DriverState::no_hardware: return {};
    case DriverState::no_library:
      return {"this machine has an NVIDIA GPU, but libcuda.so.1 is not installed",
              install + "; in a container, start it with access to the GPU"};
    case DriverState::broken_library:
      return {fmt::format("libcuda.so.1 cannot be used: {}", probe.detail), install};
    case DriverState::no_device:
      return {fmt::format("the driver finds no GPU ({})", probe.detail),
              "check `lspci`; in a container, start it with access to the GPU"};
    case DriverState::hidden:
      return {
          fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" hides every GPU", sources.visible_devices.value_or("")),
          "unset CUDA_VISIBLE_DEVICES, or name a GPU that `nvidia-smi -L` lists"};
    case DriverState::no_permission:
      return {fmt::format("no permission to open /dev/nvidia* ({})", probe.detail),
              "run as a member of the group that owns /dev/nvidia0 (often `video` or `render`)"};
    case DriverState::mismatch:
      return {
          fmt::format("the kernel module and the driver library have different versions ({})", probe.detail),
          "restart the machine, so that the module of the installed version is loaded"};
    case DriverState::not_ready:
      return {fmt::format("the GPU system is not ready ({})", probe.detail),
              "start nvidia-fabricmanager (NVSwitch machines) or the MPS daemon, and check its log"};
    case DriverState::failed:
      return {fmt::format("the driver failed with {}", probe.detail),
              "check `nvidia-smi` and the kernel's log; loading the module nvidia-uvm often helps"};
  }
  return {};
}

bool runs_on(std::string_view architecture, int major, int minor) {
  const bool exact = architecture.ends_with('a');
  int number = 0;
  for (const char digit : architecture.substr(0, architecture.size() - (exact ? 1 : 0))) {
    if (digit < '0' || digit > '9') return false;
    number = number * 10 + (digit - '0');
  }
  if (exact) return number == major * 10 + minor;
  return number / 10 == major && number % 10 <= minor;
}

std::optional<Advice> why_unusable(const GpuDevice& device, const GpuProbe& probe, const CudaBuild& build) {
  if (build.toolkit_version == 0) {
    return Advice{"this program was built without the CUDA backend", "use --device cpu, which needs no GPU"};
  }
  if (probe.cuda_version / 1000 < build.toolkit_version / 1000) {
    return Advice{fmt::format("the driver{}{} supports CUDA {} at most, this program needs {}",
                              probe.driver_version.empty() ? "" : " ", probe.driver_version,
                              dotted(probe.cuda_version), dotted(build.toolkit_version)),
                  "install a newer NVIDIA driver"};
  }
  for (const std::string& architecture : build.architectures) {
    if (runs_on(architecture, device.major, device.minor)) return std::nullopt;
  }
  return Advice{fmt::format("its compute capability is {}.{}, this program has kernels for sm_{}",
                            device.major, device.minor, fmt::join(build.architectures, " sm_")),
                fmt::format("build with -DINFERNO_CUDA_ARCHITECTURES={}{}", device.major, device.minor)};
}

}  // namespace inferno::cuda
