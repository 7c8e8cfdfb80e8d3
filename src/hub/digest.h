// The hash that names a blob: SHA-256 for large files, git's SHA-1 for small ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace inferno::hub {

// Takes all bytes of a file in order. One thread at a time.
class Digest {
 public:
  // 64 digits: SHA-256. 40 digits: SHA-1 of "blob <size>", a zero byte and the content, as git names a file.
  Digest(std::string_view etag, std::uint64_t size);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string hex();  // call once, at the end

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string_view algorithm_of(std::string_view etag);  // "sha256" or "git-sha1"

// The digest of a file, with the algorithm of `etag`. Error{io} if the file cannot be read. `read` receives
// the number of bytes after each read; if it returns false, hashing stops and the result is empty.
std::string digest_of_file(const std::filesystem::path& file, std::string_view etag,
                           const std::function<bool(std::uint64_t bytes)>& read = {});

}  // namespace inferno::hub
