// Downloads a model from the hub into the cache shared with Hugging Face's tools, or into a plain folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hub/client.h"
#include "hub/download/download.h"
#include "hub/names/file_selection.h"
#include "hub/names/model_name.h"

namespace inferno::hub {

// The files to fetch, all from one commit.
struct ModelPlan {
  ModelName name;
  ModelInfo info;
  std::vector<HubFile> listing;  // all files of the commit
  FileSelection selection;       // every file has an etag
};

// Asks the hub for the commit, the files, and, if the model is gated, for access.
ModelPlan plan_model(HubClient& client, const ModelName& name, const SelectionRules& rules);

struct ModelPlace {
  std::filesystem::path local_folder;  // empty: the cache
  int jobs = 8;                        // connections
};

class ModelDownload {
 public:
  // Checks which files are present; writes nothing.
  ModelDownload(const HubClient& client, ModelPlan plan, const ModelPlace& place, IsCancelled is_cancelled);
  ~ModelDownload();
  ModelDownload(const ModelDownload&) = delete;
  ModelDownload& operator=(const ModelDownload&) = delete;

  const ModelPlan& plan() const { return plan_; }
  // Where the model will be: snapshots/<commit> of the cache, or the folder.
  std::filesystem::path folder() const;

  // Error{io} if the disk does not have enough free space.
  void require_space() const;

  // As Download::run(). In the cache every verified file is linked at once, and the ref is written when all
  // files are present.
  void run();
  DownloadProgress progress() const;  // any thread

  class Placing;  // in the cache or in a folder

 private:
  ModelPlan plan_;
  std::unique_ptr<Placing> placing_;
  std::unique_ptr<Download> download_;
};

}  // namespace inferno::hub
