// A model from the hub into the cache that Hugging Face's tools share, or into a folder of one's own.
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

// What will be fetched: decided once, for one commit.
struct ModelPlan {
  ModelName name;
  ModelInfo info;
  std::vector<HubFile> listing;  // all files of the commit
  FileSelection selection;       // each has an etag
};

// Asks the hub: which commit, which files, and for a gated model whether they may be read.
ModelPlan plan_model(HubClient& client, const ModelName& name, const SelectionRules& rules);

struct ModelPlace {
  std::filesystem::path local_folder;  // empty: the cache
  int jobs = 8;                        // connections
};

class ModelDownload {
 public:
  // Looks at what is there; writes nothing.
  ModelDownload(const HubClient& client, ModelPlan plan, const ModelPlace& place, IsCancelled is_cancelled);
  ~ModelDownload();
  ModelDownload(const ModelDownload&) = delete;
  ModelDownload& operator=(const ModelDownload&) = delete;

  const ModelPlan& plan() const { return plan_; }
  // Where the files are in the end: snapshots/<commit> of the cache, or the folder.
  std::filesystem::path folder() const;

  // Error{io} when the disk has less room than is needed.
  void require_space() const;

  // As Download::run(). In the cache every verified file is linked at once, and the revision points to the
  // commit when all are there.
  void run();
  DownloadProgress progress() const;  // any thread

  class Placing;  // in the cache or in a folder

 private:
  ModelPlan plan_;
  std::unique_ptr<Placing> placing_;
  std::unique_ptr<Download> download_;
};

}  // namespace inferno::hub
