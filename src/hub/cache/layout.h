// Where things are in the cache that Hugging Face's tools, llama.cpp and Inferno share (local-cache.md of
// hub-docs):
//
//   CACHEDIR.TAG
//   .locks/models--org--name/<etag>.lock
//   models--org--name/blobs/<etag>                  the bytes; the name says what they hash to
//                     blobs/<etag>.<x>.inferno.incomplete
//                     refs/<revision>               a commit
//                     snapshots/<commit>/<path>     -> ../../blobs/<etag>
//                     trees/<commit>.json           what the model consists of
//                     .no_exist/<commit>/<path>     known to be absent
//
// Names are computed here and nothing is touched. Every argument is untrusted: what is no id, etag, commit,
// revision or safe path is an Error{corrupt}, so no path that comes out of here leaves the cache.
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

  // What the link at snapshot_file() says: relative, so that a cache may be moved.
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

// "org/name" of "models--org--name"; nullopt for folders of other things.
std::optional<std::string> id_of_folder(std::string_view folder_name);

bool is_commit(std::string_view text);  // 40 hex digits
bool is_etag(std::string_view text);    // 40 or 64 hex digits

}  // namespace inferno::hub
