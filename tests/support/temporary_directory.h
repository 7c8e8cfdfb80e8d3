// A directory that lives as long as a test, for files that a test writes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace inferno {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file inside, replacing what was there, and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view text) const;
  std::filesystem::path write(std::string_view name, std::span<const std::byte> bytes) const;

  // Removes everything inside.
  void clear() const;

 private:
  std::filesystem::path path_;
};

}  // namespace inferno
