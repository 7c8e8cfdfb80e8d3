// A libnvidia-ml.so.1 to go with the other fake: 60 GiB free, and as many memory errors as a test asks for.
#include <cstdlib>
#include <cstring>

extern "C" {

int nvmlInit_v2() {
  return 0;
}

int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  std::strncpy(version, "580.95.05", size);
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = nullptr;
  return std::strcmp(bus, "0000:01:00.0") == 0 ? 0 : 6;
}

int nvmlDeviceGetMemoryInfo(void* /*device*/, unsigned long long* memory) {
  memory[0] = 80ULL << 30;
  memory[1] = 60ULL << 30;
  memory[2] = 20ULL << 30;
  return 0;
}

int nvmlDeviceGetTotalEccErrors(void* /*device*/, int kind, int counter, unsigned long long* errors) {
  const char* text = std::getenv("FAKE_NVML_ERRORS");
  *errors = text != nullptr && kind == 1 && counter == 0 ? std::strtoull(text, nullptr, 10) : 0;
  return 0;
}
}
