// Downloads a model for a command, with the plan, a question, the progress and the result on stderr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "hub/names/model_name.h"

namespace inferno {

inline constexpr int not_downloaded_code = 3;  // as for a model that is not found

struct DownloadChoice {
  std::vector<std::string> include = {}, exclude = {};
  std::filesystem::path local_dir = {};  // empty: the cache
  int jobs = 8;
  bool is_dry_run = false;
  bool any_family = false;  // download a model of a family that Inferno does not support
  bool asks = true;         // on a terminal, before a download that needs more than half of the free space
  bool warns_of_memory = true;  // with a note, if the model does not fit this machine
  // Asked once the size is known, before anything is downloaded; empty: yes. `shortage` is what
  // memory_shortage() tells, and no note follows.
  std::function<bool(std::uint64_t missing_bytes, const std::string& shortage)> is_wanted = {};
};

// Returns the folder with the model's files after all files are verified. Throws Exit with 130 or 143 after a
// signal, with 0 if the user declined, and with not_downloaded_code if
// `is_wanted` said no; errors are those of hub::ModelDownload::run(), and
// Error{unsupported} for a model of an unsupported family unless the user wants it.
std::filesystem::path download_model(const Environment& environment, const hub::ModelName& name,
                                     const DownloadChoice& choice);

}  // namespace inferno
