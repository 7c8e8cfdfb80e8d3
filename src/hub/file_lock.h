// flock(2) on a file of its own, as Hugging Face's tools take it, so that two programs do not fetch the same
// blob.
#pragma once

#include <filesystem>
#include <optional>

#include "hub/durable.h"

namespace inferno::hub {

// Held while it lives. On file systems without locks everybody gets one: that costs work twice, never a file.
class FileLock {
 public:
  // nullopt when somebody else holds it. Error{io} when the lock's file cannot be made.
  static std::optional<FileLock> try_take(const std::filesystem::path& file);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace inferno::hub
