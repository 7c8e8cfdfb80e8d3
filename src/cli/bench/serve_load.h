// `inferno bench --serve URL`: puts load on any server with OpenAI's API and measures what its users would
// see.
#pragma once

#include <string>

#include "cli/bench/load/load_levels.h"

namespace inferno {

struct ServeLoadOptions {
  std::string url;
  std::string endpoint = "completions";  // or "chat"
  std::string model;                     // the server's first one if empty
  std::string key;
  double stall_seconds = 600.0;
  load::LoadOptions load;
};

// Prints the result on stdout, notes on stderr. Error if the server cannot be reached or refuses a first
// request; Exit{1} if no request succeeded.
void run_serve_load(const ServeLoadOptions& options);

}  // namespace inferno
