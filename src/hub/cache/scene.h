// A hub cache for tests in a temporary folder, with files as Inferno, huggingface_hub or the JS client write
// them.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "hub/cache/layout.h"
#include "hub/names/hub_file.h"

namespace inferno::hub {

class CacheScene {
 public:
  CacheScene() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cache-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    root_ = pattern;
  }
  ~CacheScene() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  CacheScene(const CacheScene&) = delete;
  CacheScene& operator=(const CacheScene&) = delete;

  const std::filesystem::path& root() const { return root_; }
  RepositoryLayout layout(std::string_view id) const {
    return CacheLayout(root_).repository(parse_hub_name(id));
  }

  void write(const std::filesystem::path& file, std::string_view text) const {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  // A made-up hash: the letter, 64 times.
  static std::string etag(char letter) { return std::string(64, letter); }
  static std::string commit(char letter) { return std::string(40, letter); }

  void blob(std::string_view id, char etag_letter, std::string_view text) const {
    write(layout(id).blob(etag(etag_letter)), text);
  }
  void link(std::string_view id, char commit_letter, std::string_view path, char etag_letter) const {
    const std::filesystem::path file = layout(id).snapshot_file(commit(commit_letter), path);
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(RepositoryLayout::link_target(path, etag(etag_letter)), file);
  }
  // A partial file, as an interrupted download leaves it.
  void partial(std::string_view id, char etag_letter, std::string_view text) const {
    write(layout(id).blobs() / (etag(etag_letter) + ".0123.inferno.incomplete"), text);
  }
  // Blob and link.
  void file(std::string_view id, char commit_letter, std::string_view path, char etag_letter,
            std::string_view text) const {
    blob(id, etag_letter, text);
    link(id, commit_letter, path, etag_letter);
  }
  void ref(std::string_view id, std::string_view revision, char commit_letter) const {
    write(layout(id).ref(revision), commit(commit_letter));
  }
  void tree(std::string_view id, char commit_letter, const std::vector<HubFile>& files) const {
    write(layout(id).tree(commit(commit_letter)), tree_text(files));
  }

 private:
  std::filesystem::path root_;
};

}  // namespace inferno::hub
