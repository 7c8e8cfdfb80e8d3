#include "service/loading/device.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace inferno {
namespace {

[[noreturn]] void refuse(const std::string& device) {
  fail(ErrorKind::invalid_request,
       fmt::format("device {}: expected auto, cpu, cuda or cuda:N with N from 0", device),
       {.why = {}, .next = "inferno doctor shows the devices of this machine"});
}

// nullopt for a device that is not a GPU.
std::optional<int> cuda_index(const std::string& device) {
  constexpr std::string_view name = "cuda";
  if (!device.starts_with(name)) return std::nullopt;
  if (device == name) return 0;
  if (device[name.size()] != ':') refuse(device);
  int index = -1;
  const char* end = device.data() + device.size();
  const auto [stop, problem] = std::from_chars(device.data() + name.size() + 1, end, index);
  if (problem != std::errc() || stop != end || index < 0) refuse(device);
  return index;
}

}  // namespace

std::unique_ptr<Backend> open_device(const DeviceOptions& options) {
  if (const auto index = cuda_index(options.device)) return make_cuda_backend(*index, options.threads);
  if (options.device == "auto" && cuda_is_usable()) return make_cuda_backend(0, options.threads);
  if (options.device != "auto" && options.device != "cpu") refuse(options.device);
  return make_cpu_backend(options.threads);
}

}  // namespace inferno
