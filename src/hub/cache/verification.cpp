#include "hub/cache/verification.h"

#include <map>
#include <system_error>

#include "hub/digest.h"
#include "hub/names/hub_file.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {

namespace fs = std::filesystem;

std::optional<VerifiedFile> verify_file(const fs::path& file, const std::string& etag,
                                        const VerifyProgress& progress) {
  VerifiedFile verified = {.path = file.filename().string(), .file = file, .verdict = {}, .expected = etag};
  verified.found = digest_of_file(file, etag, progress);
  if (verified.found.empty()) return std::nullopt;
  verified.verdict = verified.found == etag ? FileVerdict::valid : FileVerdict::corrupt;
  return verified;
}

std::optional<std::vector<VerifiedFile>> verify_model(const RepositoryLayout& layout,
                                                      const CachedModel& model,
                                                      const VerifyProgress& progress) {
  std::map<std::string, std::string> listed;  // path to hash
  if (is_commit(model.commit)) {
    for (HubFile& file : read_tree(layout.tree(model.commit)).value_or(std::vector<HubFile>{})) {
      listed[file.path] = file.etag();
    }
  }
  std::map<std::string, VerifiedFile> blobs;  // read once each, even if it has several names
  std::map<std::string, PresentFile> present;
  for (PresentFile& file : files_below(layout.snapshots() / model.commit, 8))
    present[file.path] = std::move(file);
  std::vector<VerifiedFile> files;
  for (const std::string& path : model.stored.files) {
    const auto here = present.find(path);
    if (here == present.end()) {
      if (!is_document(path)) files.push_back({.path = path, .file = {}, .verdict = FileVerdict::missing});
      continue;
    }
    const auto wanted = listed.find(path);
    const std::string etag = wanted != listed.end() ? wanted->second : here->second.etag;
    std::error_code problem;
    const fs::path bytes = fs::canonical(here->second.file, problem);
    if (etag.empty() || problem) {
      files.push_back({.path = path, .file = here->second.file, .verdict = FileVerdict::unverified});
      continue;
    }
    if (const auto known = blobs.find(bytes.string() + etag); known != blobs.end()) {
      files.push_back(known->second);
    } else {
      auto verified = verify_file(bytes, etag, progress);
      if (!verified) return std::nullopt;
      files.push_back(blobs.emplace(bytes.string() + etag, std::move(*verified)).first->second);
    }
    files.back().path = path;
  }
  return files;
}

std::error_code discard(const RepositoryLayout& layout, const CachedModel& model, const VerifiedFile& file) {
  std::error_code problem;
  const fs::path home = fs::canonical(layout.folder(), problem);
  if (problem) return problem;
  const bool is_ours =
      !file.file.lexically_relative(home).empty() && *file.file.lexically_relative(home).begin() != "..";
  fs::remove(is_ours ? file.file : layout.snapshots() / model.commit / safe_path(file.path), problem);
  return problem;
}

}  // namespace inferno::hub
