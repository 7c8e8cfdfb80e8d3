#include "cli/download/family.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "chat/json.h"
#include "hub/names/gguf_file_name.h"
#include "model/architecture.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_config = std::uint64_t{1} << 20;
constexpr std::size_t gguf_start = std::size_t{64} << 10;
constexpr std::size_t max_type = 64;  // characters of a name that is shown

// Reads numbers and strings from the front of a GGUF header; false from the first that is not complete.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  bool read(Number& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }
  bool read(std::string_view& text) {
    std::uint64_t length = 0;
    if (!read(length) || length > rest_.size()) return false;
    text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  bool skip(std::size_t bytes) {
    if (bytes > rest_.size()) return false;
    rest_.remove_prefix(bytes);
    return true;
  }

 private:
  std::string_view rest_;
};

constexpr std::uint32_t gguf_string = 8;
// Bytes of the value types 0 to 12: integers, floats, bool; 0 for strings and arrays.
constexpr std::size_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

}  // namespace

bool Family::is_supported() const {
  return find_architecture(type, container) != nullptr;
}

std::string architecture_in_gguf(std::string_view start) {
  Reader reader(start);
  std::uint32_t magic = 0, version = 0;
  std::uint64_t tensors = 0, values = 0;
  if (!reader.read(magic) || magic != 0x46554747 || !reader.read(version) || !reader.read(tensors) ||
      !reader.read(values))
    return "";
  for (std::uint64_t at = 0; at < values; ++at) {
    std::string_view key, text;
    std::uint32_t type = 0;
    if (!reader.read(key) || !reader.read(type)) return "";
    if (type == gguf_string) {
      if (!reader.read(text)) return "";
      if (key == "general.architecture") return std::string(text.substr(0, max_type));
    } else if (type >= std::size(value_bytes) || value_bytes[type] == 0 || !reader.skip(value_bytes[type])) {
      return "";  // an array; the architecture is written before the first one
    }
  }
  return "";
}

std::optional<Family> family_on_hub(hub::HubClient& client, const hub::ModelPlan& plan) try {
  const auto& taken = plan.selection.taken;
  const auto read = [&](const hub::HubFile& file, std::size_t count) {
    return client.read(plan.name.id(), plan.info.commit, file.path, 0, count);
  };
  const auto gguf = std::ranges::find_if(taken, [](const auto& file) { return hub::is_gguf(file.path); });
  if (gguf != taken.end()) {
    std::string type = architecture_in_gguf(read(*gguf, std::min<std::uint64_t>(gguf->size, gguf_start)));
    return type.empty() ? std::nullopt : std::optional(Family{std::move(type), Container::gguf});
  }
  const bool has_weights =
      std::ranges::any_of(taken, [](const auto& file) { return file.path.ends_with(".safetensors"); });
  const auto config = std::ranges::find(plan.listing, "config.json", &hub::HubFile::path);
  if (!has_weights || config == plan.listing.end() || config->size > max_config) return std::nullopt;
  std::string text = read(*config, config->size);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("model_type") || !json["model_type"].is_string())
    return std::nullopt;
  return Family{json["model_type"].get<std::string>().substr(0, max_type), Container::safetensors,
                std::move(text)};
} catch (const Error&) {
  return std::nullopt;  // the download itself tells what is wrong with the hub
}

}  // namespace inferno
