#include "base/output_path.h"

#include <fmt/format.h>

#include "base/error.h"

namespace inferno {

namespace fs = std::filesystem;

fs::path output_path(const fs::path& path) {
  if (path.empty()) fail(ErrorKind::invalid_request, "no name given for the file to write");
  std::error_code problem;
  fs::path target = path;
  if (fs::is_symlink(path, problem)) {
    target = fs::weakly_canonical(path, problem);
    if (problem)
      fail(ErrorKind::io, fmt::format("{}: cannot follow the link: {}", path.string(), problem.message()));
  }
  const fs::file_status status = fs::status(target, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: is there and is no regular file", path.string()),
         {.why = "a finished file is moved into place, which would replace it", .next = "name another file"});
  }
  return target;
}

}  // namespace inferno
