// datetime.strftime in the C locale.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::jinja {

// nullopt, with the reason in `problem`, for a directive that is not known.
std::optional<std::string> format_time(std::chrono::local_seconds time, std::string_view format,
                                       std::string& problem);

}  // namespace inferno::jinja
