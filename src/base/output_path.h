// Where a file that is written under another name and then moved into place may be moved to.
#pragma once

#include <filesystem>

namespace inferno {

// `path`, with a link at its end followed, so that the link stays a link. Error{invalid_request} when it is
// empty or something that is there and no regular file: moving a file onto a device would replace the device.
std::filesystem::path output_path(const std::filesystem::path& path);

}  // namespace inferno
