// Downloads a model for a command, with the plan, a question, the progress and the result on stderr.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hub/names/model_name.h"
#include "hub/settings.h"

namespace inferno {

struct DownloadChoice {
  std::vector<std::string> include = {}, exclude = {};
  std::filesystem::path local_dir = {};  // empty: the cache
  int jobs = 8;
  bool is_dry_run = false;
  bool asks = true;  // on a terminal, before a download that needs more than half of the free space
};

// Returns the folder with the model's files after all files are verified. Throws Exit with 130 or 143 after a
// signal and with 0 if the user declined; errors are those of hub::ModelDownload::run().
std::filesystem::path download_model(const hub::HubSettings& settings, const hub::ModelName& name,
                                     const DownloadChoice& choice);

}  // namespace inferno
