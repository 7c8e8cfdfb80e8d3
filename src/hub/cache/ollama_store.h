// Models in Ollama's store, which is never modified: manifests/<host>/<namespace>/<name>/<tag> names a layer
// of type application/vnd.ollama.image.model, which is a GGUF file in blobs/sha256-<hex>.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace inferno::hub {

struct OllamaModel {
  std::string name;            // "llama3.2:1b", "user/name:tag", "hf.co/org/name:Q4_K_M"
  std::filesystem::path path;  // the GGUF file
  std::uint64_t bytes = 0;     // from the manifest
  bool is_complete = false;    // the file exists and has that size
  std::int64_t last_use = 0;
};

// `store` is OLLAMA_MODELS or ~/.ollama/models. Sorted by name; skips invalid manifests.
std::vector<OllamaModel> scan_ollama(const std::filesystem::path& store);

}  // namespace inferno::hub
