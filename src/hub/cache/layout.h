// The layout of the cache that Hugging Face's tools, llama.cpp and Inferno share (local-cache.md of
// hub-docs):
//
//   CACHEDIR.TAG
//   .locks/models--org--name/<etag>.lock
//   models--org--name/blobs/<etag>                  the bytes; the name is their hash
//                     blobs/<etag>.<x>.inferno.incomplete
//                     refs/<revision>               a commit
//                     snapshots/<commit>/<path>     -> ../../blobs/<etag>
//                     trees/<commit>.json           the list of files of the commit
//                     .no_exist/<commit>/<path>     known to be absent
//
// These classes compute paths and do not access the file system. Every argument is untrusted: an invalid id,
// etag, commit, revision or path is Error{corrupt}, so that no returned path leads out of the cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "hub/names/model_name.h"

namespace inferno::hub {

// One model in the cache.
class RepositoryLayout {
 public:
  RepositoryLayout(std::filesystem::path cache, std::string folder_name);

  std::filesystem::path folder() const { return cache_ / folder_name_; }
  std::filesystem::path blobs() const { return folder() / "blobs"; }
  std::filesystem::path refs() const { return folder() / "refs"; }
  std::filesystem::path snapshots() const { return folder() / "snapshots"; }
  std::filesystem::path trees() const { return folder() / "trees"; }

  std::filesystem::path blob(std::string_view etag) const;
  std::filesystem::path lock(std::string_view etag) const;
  std::filesystem::path ref(std::string_view revision) const;
  std::filesystem::path snapshot(std::string_view commit) const;
  std::filesystem::path snapshot_file(std::string_view commit, std::string_view path) const;
  std::filesystem::path tree(std::string_view commit) const;
  std::filesystem::path no_exist(std::string_view commit, std::string_view path) const;

  // The target of the link at snapshot_file(): relative, so that a cache can be moved.
  static std::filesystem::path link_target(std::string_view path, std::string_view etag);

 private:
  std::filesystem::path cache_;
  std::string folder_name_;  // models--org--name
};

class CacheLayout {
 public:
  explicit CacheLayout(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path tag() const { return root_ / "CACHEDIR.TAG"; }
  RepositoryLayout repository(const ModelName& name) const;

 private:
  std::filesystem::path root_;
};

// "org/name" of "models--org--name"; nullopt for other folders.
std::optional<std::string> id_of_folder(std::string_view folder_name);

}  // namespace inferno::hub
