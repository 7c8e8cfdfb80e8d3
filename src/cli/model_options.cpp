#include "cli/model_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "cli/model_resolution.h"

namespace inferno {
namespace {

int cuda_index(const std::string& device) {
  if (device == "cuda") return 0;
  const std::string_view digits = std::string_view(device).substr(std::string_view("cuda:").size());
  int index = -1;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (problem != std::errc() || end != digits.data() + digits.size() || index < 0) {
    fail(ErrorKind::invalid_request,
         fmt::format("--device {}: expected auto, cpu, cuda or cuda:N with N from 0", device));
  }
  return index;
}

std::unique_ptr<Backend> choose(const DeviceOptions& options) {
  if (options.device == "cpu") return make_cpu_backend(options.threads);
  if (options.device == "cuda" || options.device.starts_with("cuda:")) {
    return make_cuda_backend(cuda_index(options.device), options.threads);
  }
  if (options.device != "auto") {
    fail(ErrorKind::invalid_request,
         fmt::format("--device {}: expected auto, cpu, cuda or cuda:N", options.device));
  }
  return cuda_is_usable() ? make_cuda_backend(0, options.threads) : make_cpu_backend(options.threads);
}

}  // namespace

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command
      .add_option("--threads", options.threads,
                  "CPU threads, on a GPU those that read weights; 0 means one for each usable core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

CLI::Option* add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                        const std::string& help) {
  return command.add_flag_function(names, [&value](std::int64_t count) { value = count > 0; }, help);
}

CLI::Option* takes_model(CLI::Option* option) {
  return option->transform(
      [](const std::string& name) { return resolve_model(name, Environment::of_process()).path.string(); },
      "");
}

CLI::Option* add_model_argument(CLI::App& command, std::string& model) {
  return takes_model(command.add_option("MODEL", model, std::string(model_help)));
}

std::unique_ptr<Backend> make_backend(const DeviceOptions& options) {
  std::unique_ptr<Backend> backend = choose(options);
  const DeviceInfo info = backend->info();
  fmt::print(stderr, "device: {} ({})\n", info.name, info.kernels);
  return backend;
}

}  // namespace inferno
