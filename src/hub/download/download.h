// Fetches files of a model from the hub: several at once, each over several connections, resumed where an
// earlier run stopped, and verified before they get their final names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hub/download/fetch.h"
#include "hub/names/hub_file.h"
#include "hub/settings.h"

namespace inferno::hub {

// A file to fetch, and where to put it.
struct DownloadItem {
  HubFile file;
  std::filesystem::path partial_folder;  // for partial files; the same file system as `destination`
  std::filesystem::path destination;
  std::filesystem::path lock;
  std::function<bool()> is_present;   // whether the file is already complete
  std::function<void()> on_verified;  // called once the file is complete, even if another process fetched it
};

// `elsewhere`: another process holds the lock and fetches the file.
enum class FileState { waiting, elsewhere, fetching, verifying, finished };

struct FileProgress {
  std::string path;
  std::uint64_t size = 0;
  std::uint64_t have = 0;     // bytes on this machine
  std::uint64_t fetched = 0;  // bytes received in this run
  FileState state = FileState::waiting;
};

struct DownloadProgress {
  std::vector<FileProgress> files;
  std::uint64_t size = 0, have = 0, fetched = 0;  // sums over `files`
  std::uint64_t resumable = 0;  // bytes of earlier runs in files that are not yet opened, not in `have`
  int finished = 0;             // number of finished files
};

class Download {
 public:
  // `jobs` is the maximum number of connections.
  Download(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
           std::shared_ptr<RateGate> gate, IsCancelled is_cancelled);
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  // Error{io} with both figures when the disk has less free space than is needed.
  void require_space() const;

  // Returns when every item is present and verified. After any failure the bytes fetched so far stay for the
  // next run: Error{network}, Error{io}. A checksum mismatch is Error{corrupt}, and those bytes are removed.
  void run();

  DownloadProgress progress() const;  // any thread

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace inferno::hub
