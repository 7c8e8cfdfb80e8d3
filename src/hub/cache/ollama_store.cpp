#include "hub/cache/ollama_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "hub/cache/scan.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t max_manifest = std::uint64_t{1} << 20;

struct Layer {
  std::string hash;  // 64 hex digits
  std::uint64_t bytes = 0;
};

std::optional<Layer> model_layer(const PresentFile& manifest) {
  if (manifest.size > max_manifest) return std::nullopt;
  const std::string whole = read_start(manifest.file, manifest.size).value_or("");
  const Json json = Json::parse(whole, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) return std::nullopt;
  for (const Json& layer : json["layers"]) {
    if (!layer.is_object() || layer.value("mediaType", Json()) != "application/vnd.ollama.image.model")
      continue;
    const Json digest = layer.value("digest", Json()), size = layer.value("size", Json());
    if (!digest.is_string() || !size.is_number_unsigned()) return std::nullopt;
    const auto& text = digest.get_ref<const std::string&>();
    // A digest becomes a file name, and a manifest may come from anywhere: CVE-2024-37032.
    if (!text.starts_with("sha256:") || !is_hex(std::string_view(text).substr(7), 64)) return std::nullopt;
    return Layer{text.substr(7), size.get<std::uint64_t>()};
  }
  return std::nullopt;
}

// "registry.ollama.ai/library/llama3.2/1b" to "llama3.2:1b", as Ollama displays it.
std::optional<std::string> name_of(std::string path) {
  const std::size_t tag = path.rfind('/');
  if (tag == std::string::npos || std::count(path.begin(), path.end(), '/') != 3) return std::nullopt;
  path[tag] = ':';
  for (const std::string_view implied : {"registry.ollama.ai/library/", "registry.ollama.ai/"}) {
    if (path.starts_with(implied)) return path.substr(implied.size());
  }
  return path;
}

}  // namespace

std::vector<OllamaModel> scan_ollama(const fs::path& store) {
  std::vector<OllamaModel> models;
  for (const PresentFile& manifest : files_below(store / "manifests", 3)) {
    const auto name = name_of(manifest.path);
    const auto layer = name ? model_layer(manifest) : std::nullopt;
    if (!layer) continue;
    OllamaModel model = {
        .name = *name, .path = store / "blobs" / ("sha256-" + layer->hash), .bytes = layer->bytes};
    struct stat status = {};
    if (::stat(model.path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      model.is_complete = static_cast<std::uint64_t>(status.st_size) == layer->bytes;
      model.last_use = status.st_atime;
    }
    models.push_back(std::move(model));
  }
  std::sort(models.begin(), models.end(),
            [](const OllamaModel& a, const OllamaModel& b) { return a.name < b.name; });
  return models;
}

}  // namespace inferno::hub
