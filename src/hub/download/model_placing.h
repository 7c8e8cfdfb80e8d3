// Where the files of a download go, and the bookkeeping around them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hub/cache/layout.h"
#include "hub/download/download.h"
#include "hub/download/model_download.h"

namespace inferno::hub {

class ModelPlacing {
 public:
  virtual ~ModelPlacing() = default;
  virtual std::filesystem::path folder() const = 0;
  virtual DownloadItem item(const HubFile& file) = 0;
  // Before the first byte: folders, and what the model consists of. `is_complete`: nothing will be fetched,
  // and a place that cannot be written is as good as another.
  virtual void prepare(bool is_complete) = 0;
  virtual void note_absent(const std::string& path) = 0;
  virtual void finish() = 0;  // after the last one

  static std::unique_ptr<ModelPlacing> in_cache(const HubSettings& settings, const ModelPlan& plan);
  static std::unique_ptr<ModelPlacing> in_folder(const std::filesystem::path& folder, const ModelPlan& plan);
};

}  // namespace inferno::hub
