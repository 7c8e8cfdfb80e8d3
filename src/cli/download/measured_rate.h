// The rate of the last download, kept between runs, so that an offer can say how long a download takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/environment.h"

namespace inferno {

// Bytes a second of the last download that was long enough to tell; nullopt if there was none.
std::optional<double> last_download_rate(const Environment& environment);

// Keeps the rate of a download in the state folder. A short download says little about the connection and is
// not kept, and a folder that cannot be written is no error.
void keep_download_rate(const Environment& environment, std::uint64_t bytes, double seconds);

// "5.0 GB, about 4 min 10 s" at that rate; without one the size alone.
std::string size_and_time(std::uint64_t bytes, std::optional<double> rate);

}  // namespace inferno
