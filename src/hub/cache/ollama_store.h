// Models that Ollama keeps, read in place and never written: manifests/<host>/<namespace>/<name>/<tag> names
// a layer of type application/vnd.ollama.image.model, which is a GGUF file in blobs/sha256-<hex>.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace inferno::hub {

struct OllamaModel {
  std::string name;            // "llama3.2:1b", "user/name:tag", "hf.co/org/name:Q4_K_M"
  std::filesystem::path path;  // the GGUF file
  std::uint64_t bytes = 0;     // as the manifest says
  bool is_complete = false;    // the file is there and of that size
  std::int64_t last_use = 0;
};

// `store` is OLLAMA_MODELS or ~/.ollama/models. Sorted by name; manifests that cannot be understood are
// passed over.
std::vector<OllamaModel> scan_ollama(const std::filesystem::path& store);

}  // namespace inferno::hub
