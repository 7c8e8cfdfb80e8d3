// One connection at work on one range of a file: requests until the bytes are on disk, through dropped
// connections, expired URLs and servers that ask for a pause.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "hub/http/http.h"
#include "hub/names/hub_file.h"

namespace inferno::hub {

class PartialFile;
struct Claim;

struct DownloadSource {
  std::string id;      // "org/name"
  std::string commit;  // every file is fetched from this commit
  // Called when the hub reports that the commit has no such file.
  std::function<void(const std::string& path)> on_absent = {};
};

// What the connections that fetch the same file share. Any thread.
struct FetchedFile {
  explicit FetchedFile(HubFile wanted) : file(std::move(wanted)) {}

  const HubFile file;
  std::atomic<std::uint64_t> fetched = 0;  // bytes received in this run
  std::atomic<bool> takes_ranges = true;   // false once the server has ignored a Range header
  std::mutex mutex;                        // guards signed_url
  std::string signed_url;                  // where the hub redirected to; valid for this run only
};

// Fetches the range that `claim` holds and moves its position. An unfinished claim is released: the transfer
// was cancelled, or the file was restarted. Returns the seconds until the last response began. Error{network}
// when the source fails for good, Error{io} when the disk does.
double fetch(HttpClient& http, const DownloadSource& source, FetchedFile& file, PartialFile& partial,
             Claim& claim);

}  // namespace inferno::hub
