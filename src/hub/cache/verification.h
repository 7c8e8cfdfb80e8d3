// Whether the bytes of cached models are still what their names say.
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
  right,
  wrong,     // its bytes do not hash to what they should
  missing,   // a file that belongs to the model is not there
  unproven,  // nothing says what it should hash to
};

struct VerifiedFile {
  std::string path;
  std::filesystem::path file;  // the bytes: a blob, or the file itself
  FileVerdict verdict = FileVerdict::unproven;
  std::string expected = {}, found = {};  // hashes, in hex
};

// Told how many bytes were read; false ends it.
using VerifyProgress = std::function<bool(std::uint64_t bytes)>;

// Every file of a cached model, hashed. nullopt when `progress` ended it. Error{io} when a file cannot be
// read.
std::optional<std::vector<VerifiedFile>> verify_model(const RepositoryLayout& layout,
                                                      const CachedModel& model,
                                                      const VerifyProgress& progress);

// Takes a wrong file away, so that nothing finds it under its name again: the blob, or, where a link leads
// out of the cache, the link alone. The reason when that is not possible.
std::error_code discard(const RepositoryLayout& layout, const CachedModel& model, const VerifiedFile& file);

// One file against a hash, for stores that name files by it.
std::optional<VerifiedFile> verify_file(const std::filesystem::path& file, const std::string& etag,
                                        const VerifyProgress& progress);

}  // namespace inferno::hub
