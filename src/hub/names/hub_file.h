// One file of a model on the hub, as a listing or a cached tree tells it.
#pragma once

#include <cstdint>
#include <string>

namespace inferno::hub {

struct HubFile {
  std::string path;  // below the model's root, with '/'; untrusted until safe_path() has seen it
  std::uint64_t size = 0;
  std::string git_oid;  // 40 hex digits: SHA-1 of "blob <size>\0<bytes>"; of the pointer for a large file
  std::string sha256;   // 64 hex digits for a large file, else empty

  // The name of its blob in the cache, which says what its bytes must hash to.
  const std::string& etag() const { return sha256.empty() ? git_oid : sha256; }
};

}  // namespace inferno::hub
