// Brings files of a model from the hub to this machine: several at once, each over several connections,
// resumed where an earlier run stopped, and verified before they get their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hub/client.h"
#include "hub/names/hub_file.h"
#include "hub/settings.h"

namespace inferno::hub {

// A file to fetch, and where its parts and itself are to be.
struct DownloadItem {
  HubFile file;
  std::filesystem::path partial_folder;  // for parts; the same file system as `destination`
  std::filesystem::path destination;
  std::filesystem::path lock;
  std::function<bool()> is_present;   // whether nothing has to be fetched
  std::function<void()> on_verified;  // once the file is there, whoever fetched it
};

enum class FileState { waiting, elsewhere, fetching, verifying, finished };

struct FileProgress {
  std::string path;
  std::uint64_t size = 0;
  std::uint64_t have = 0;     // bytes on this machine
  std::uint64_t fetched = 0;  // of them, in this run
  FileState state = FileState::waiting;
};

struct DownloadProgress {
  std::vector<FileProgress> files;
  std::uint64_t size = 0, have = 0, fetched = 0;
  int finished = 0;
};

struct DownloadSource {
  std::string id;                                               // "org/name"
  std::string commit;                                           // every file is of this one
  std::function<void(const std::string& path)> on_absent = {};  // the hub says that there is no such file
};

class Download {
 public:
  // `jobs` connections at most.
  Download(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
           std::shared_ptr<RateGate> gate, IsCancelled is_cancelled);
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  // Error{io} with both figures when the disk has less room than is needed.
  void require_space() const;

  // Returns when every item is there and verified. Whatever fails leaves what was fetched for the next run:
  // Error{network}, Error{io}, Error{corrupt} when the bytes are not what their name says (those are
  // removed).
  void run();

  DownloadProgress progress() const;  // any thread

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace inferno::hub
