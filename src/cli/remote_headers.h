// A model on the hub, known by its headers: the beginnings of its files are fetched by ranges and laid into a
// folder of sparse files of the right sizes, which open_checkpoint() takes for the model. Weights read as
// zeros; nobody reads them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hub/client.h"
#include "hub/names/file_selection.h"
#include "hub/names/model_name.h"

namespace inferno {

// A folder of its own below the system's temporary one, gone when this goes.
class TemporaryFolder {
 public:
  TemporaryFolder();  // Error{io}
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
  hub::FileSelection selection;       // what a download would take
  std::uint64_t fetched = 0;          // bytes, for the headers
  std::unique_ptr<TemporaryFolder> folder;
  std::filesystem::path path;  // for open_checkpoint()
};

// Errors as HubClient and select_files(), and Error{corrupt} for a header that is none.
RemoteModel fetch_headers(hub::HubClient& client, const hub::ModelName& name);

}  // namespace inferno
