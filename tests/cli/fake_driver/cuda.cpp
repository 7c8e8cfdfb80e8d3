// A fake libcuda.so.1 whose GPUs and faults a test chooses with FAKE_CUDA_* variables.
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

void copy(char* to, int size, const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  std::strncpy(to, text == nullptr ? otherwise : text, static_cast<std::size_t>(size));
}

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) {
  return number("FAKE_CUDA_INIT", 0);
}

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = number("FAKE_CUDA_COUNT", 1);
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return number("FAKE_CUDA_GET", 0);
}

int cuDeviceGetName(char* name, int size, int /*device*/) {
  copy(name, size, "FAKE_CUDA_NAME", "NVIDIA Fake 9000");
  return 0;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int /*device*/) {
  *bytes = std::size_t{80} << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  constexpr int major = 75;
  *value = attribute == major ? number("FAKE_CUDA_MAJOR", 9) : number("FAKE_CUDA_MINOR", 0);
  return 0;
}

int cuDeviceGetPCIBusId(char* bus, int size, int /*device*/) {
  copy(bus, size, "FAKE_CUDA_BUS", "0000:01:00.0");
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  if (code != 100) return 1;
  *name = "CUDA_ERROR_NO_DEVICE";
  return 0;
}
}
