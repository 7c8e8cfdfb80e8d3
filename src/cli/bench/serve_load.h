// `inferno bench --serve URL`: puts load on any server with OpenAI's API and measures what its users would
// see.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace inferno {

struct ServeLoadOptions {
  std::string url;
  std::string endpoint = "completions";  // or "chat"
  std::string model;                     // the server's first one if empty
  std::string key;
  std::vector<int> concurrency = {1};  // closed loop; with a rate or a trace the first limits the streams
  bool limits_streams = false;         // concurrency was given
  std::vector<double> rates;           // requests/s with Poisson arrivals
  std::string trace;                   // a file
  double speedup = 1.0;                // of the trace
  int requests = 0;                    // of each run; 0: chosen, or the whole trace
  int input_tokens = 128, output_tokens = 64, shared_prefix = 0;
  float temperature = 0.0f;
  std::optional<std::uint64_t> seed;
  double stall_seconds = 600.0;
  bool json = false;
  std::filesystem::path plot;
};

// Prints the result on stdout, notes on stderr. Error if the server cannot be reached or refuses a first
// request; Exit{1} if no request succeeded.
void run_serve_load(const ServeLoadOptions& options);

}  // namespace inferno
