// Whether the files of cached models still match their hashes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "hub/cache/scan.h"

namespace inferno::hub {

enum class FileVerdict {
  valid,
  corrupt,     // checksum mismatch
  missing,     // the file does not exist
  unverified,  // the expected hash is unknown
};

struct VerifiedFile {
  std::string path;
  std::filesystem::path file;  // a blob, or the file itself
  FileVerdict verdict = FileVerdict::unverified;
  std::string expected = {}, found = {};  // hashes, in hex
};

// Receives the number of bytes read; returning false stops the verification.
using VerifyProgress = std::function<bool(std::uint64_t bytes)>;

// Hashes every file of a cached model. nullopt if `progress` stopped it. Error{io} if a file cannot be read.
std::optional<std::vector<VerifiedFile>> verify_model(const RepositoryLayout& layout,
                                                      const CachedModel& model,
                                                      const VerifyProgress& progress);

// Removes a corrupt file: the blob, or only the link if it points out of the cache. Returns the error, if
// any.
std::error_code discard(const RepositoryLayout& layout, const CachedModel& model, const VerifiedFile& file);

// Compares one file with a hash, for stores that name files by their hashes.
std::optional<VerifiedFile> verify_file(const std::filesystem::path& file, const std::string& etag,
                                        const VerifyProgress& progress);

}  // namespace inferno::hub
