// Where stored bytes come from. Weights are read, never mapped: a file that shrinks while we load is
// an error here, where a mapping would end the process with SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace inferno {

// Immutable after construction, hence safe to read from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `to` completely from `offset`. Error{corrupt} when the range leaves the source or the file
  // has become shorter since it was opened, Error{io} when the disk fails.
  virtual void read(std::uint64_t offset, std::span<std::byte> to) const = 0;
  // Error{corrupt} if the file was written to since it was opened: bytes read before and after may not belong
  // together.
  virtual void check_unchanged() const {}
};

// A regular file. Error{not_found}, Error{io} (permission) or Error{corrupt} (a directory, a pipe).
std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path);

// Bytes already in memory: for tests, fuzzers and random weights.
std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes, std::string name = "memory");

}  // namespace inferno
