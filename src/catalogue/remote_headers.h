// A model on the hub without its weights: the first bytes of each file are fetched by range requests and
// written to sparse files of the right sizes, which open_checkpoint() opens like the real ones. Weights read
// as zeros.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hub/client.h"
#include "hub/names/file_selection.h"
#include "hub/names/model_name.h"

namespace inferno {

// A new folder in `parent`; the destructor removes it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& parent);  // Error{io}
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct RemoteModel {
  hub::ModelInfo info;
  std::vector<hub::HubFile> listing;  // all files of the commit
  hub::FileSelection selection;       // what a download would fetch
  std::uint64_t fetched = 0;          // bytes of headers
  std::unique_ptr<TemporaryFolder> folder;
  std::filesystem::path path;  // for open_checkpoint()
};

// The headers are kept in a new folder in `temporary`. Errors as HubClient and select_files(), and
// Error{corrupt} for an invalid header.
RemoteModel fetch_headers(hub::HubClient& client, const hub::ModelName& name,
                          const std::filesystem::path& temporary);

}  // namespace inferno
