// What every command that runs a model takes: which one, where, and on how many threads.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"

namespace inferno {

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda or cuda:N
  int threads = 0;              // 0: one for each usable core
};

void add_device_options(CLI::App& command, DeviceOptions& options);

// A switch with a third state, not given: "--think,!--no-think". (CLI11 would count a std::optional.)
CLI::Option* add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                        const std::string& help);

inline constexpr std::string_view model_help =
    "a directory, a .gguf file, or a name: org/name[@REVISION][:QUANT], an alias, builtin";

// What is given becomes the path that resolve_model() finds for it, or its error.
CLI::Option* takes_model(CLI::Option* option);

// The MODEL argument, resolved.
CLI::Option* add_model_argument(CLI::App& command, std::string& model);

// `auto` is decided here, once, and the choice is said on stderr. "cuda" is CUDA or an error, never the CPU.
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);

}  // namespace inferno
