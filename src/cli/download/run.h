// Fetching a model from a command: what it will do, the question, the display, the end.
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
  bool asks = true;  // before a download that takes most of the disk, on a terminal
};

// The folder with the model's files, once every one of them is there and verified. Everything is said on
// stderr. Ends the command with 130 or 143 after a signal, and with 0 when the answer was no. Errors as
// hub::ModelDownload::run().
std::filesystem::path download_model(const hub::HubSettings& settings, const hub::ModelName& name,
                                     const DownloadChoice& choice);

}  // namespace inferno
