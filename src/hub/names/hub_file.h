// One file of a model on the hub, from a file list or a cached tree.
#pragma once

#include <cstdint>
#include <string>

namespace inferno::hub {

struct HubFile {
  std::string path;  // relative to the model's root, with '/'; untrusted until it went through safe_path()
  std::uint64_t size = 0;
  std::string
      git_oid;         // 40 hex digits: SHA-1 of "blob <size>\0<bytes>"; for a large file, of its LFS pointer
  std::string sha256;  // 64 hex digits for a large file, otherwise empty

  // The name of its blob in the cache, which is the hash of its bytes.
  const std::string& etag() const { return sha256.empty() ? git_oid : sha256; }
};

}  // namespace inferno::hub
