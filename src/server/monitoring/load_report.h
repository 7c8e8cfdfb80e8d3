// The load of a server in a response header, for balancers that ask for it (ORCA, as Envoy and vLLM have it):
// a request with `endpoint-load-metrics-format: TEXT` or `JSON` gets `endpoint-load-metrics`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine_options.h"

namespace inferno::server {

inline constexpr std::string_view load_format_header = "endpoint-load-metrics-format";
inline constexpr std::string_view load_header = "endpoint-load-metrics";

// The value of the header; nullopt for a format that is neither TEXT nor JSON.
std::optional<std::string> load_report(std::string_view format, const EngineStats& stats);

}  // namespace inferno::server
