#include "cli/download/search_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/backend.h"
#include "backend/cuda/probe.h"
#include "base/sizes.h"
#include "base/system_memory.h"
#include "chat/json.h"
#include "cli/terminal/text_table.h"
#include "model/footprint.h"

namespace inferno {
namespace {

double bytes_of_type(const std::string& type) {
  const struct {
    std::string_view name;
    double bytes;
  } known[] = {{"F64", 8},     {"F32", 4},     {"I32", 4}, {"U32", 4}, {"I64", 8},  {"F8_E4M3", 1},
               {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F4", 0.5}};
  for (const auto& one : known) {
    if (type == one.name) return one.bytes;
  }
  return 2;
}

std::uint64_t number_at(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_number_unsigned()) return found->get<std::uint64_t>();
  }
  return 0;
}

bool has_ending(const hub::FoundOnHub& found, std::string_view ending) {
  return std::any_of(found.files.begin(), found.files.end(),
                     [&](const std::string& file) { return file.ends_with(ending); });
}

std::string format_of(const hub::FoundOnHub& found) {
  const bool gguf = has_ending(found, ".gguf") || !found.gguf_architecture.empty();
  if (has_ending(found, ".safetensors") || !found.safetensors.empty()) return gguf ? "both" : "safetensors";
  return gguf ? "gguf" : "other";
}

// "1.2 M", "35 k"
std::string short_count(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  if (count >= 1'000) return fmt::format("{:.0f} k", value / 1e3);
  return fmt::format("{}", count);
}

std::string short_parameters(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (count == 0) return "-";
  return count >= 1'000'000'000 ? fmt::format("{:.1f} B", value / 1e9) : fmt::format("{:.0f} M", value / 1e6);
}

std::string fit_of(const SearchResult& result, const LocalMemory& memory) {
  if (!result.fits) return "?";
  if (!*result.fits) return "no";
  if (result.context == 0) return "yes";
  const std::string context =
      result.context >= 1024 ? fmt::format("{} k", result.context / 1024) : fmt::format("{}", result.context);
  return fmt::format("{}, {}{}", memory.device, result.is_estimate ? "~" : "", context);
}

}  // namespace

LocalMemory local_memory(const std::optional<std::string>& visible_gpus) {
  if (cuda_is_usable()) {
    const cuda::GpuProbe gpus = cuda::probe({.visible_devices = visible_gpus});
    if (!gpus.devices.empty()) {
      const cuda::GpuDevice& gpu = gpus.devices.front();
      return {.device = "GPU", .bytes = gpu.free_bytes.value_or(gpu.total_bytes), .cache_element = 2};
    }
  }
  return {.device = "memory", .bytes = system_memory().obtainable, .cache_element = 4};
}

std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters) {
  double bytes = 0;
  for (const auto& [type, count] : parameters) bytes += static_cast<double>(count) * bytes_of_type(type);
  return static_cast<std::uint64_t>(std::min(bytes, 1e18));
}

CacheElements cache_elements(const hub::FoundOnHub& found, std::uint64_t parameters) {
  CacheElements elements;
  const Json config = Json::parse(found.config, nullptr, /*allow_exceptions=*/false);
  if (config.is_object()) {
    const std::uint64_t layers = number_at(config, {"num_hidden_layers", "n_layer"});
    const std::uint64_t heads = number_at(config, {"num_attention_heads", "n_head"});
    const std::uint64_t groups = number_at(config, {"num_key_value_heads"});
    const std::uint64_t width = number_at(config, {"hidden_size", "n_embd"});
    const std::uint64_t head = number_at(config, {"head_dim"});
    constexpr std::uint64_t max_size = 1 << 20;  // larger than any model, and no product below overflows
    if (layers > 0 && heads > 0 && width > 0 && std::max({layers, heads, groups, width, head}) < max_size) {
      const std::uint64_t one = head > 0 ? head : width / heads;
      elements = {.per_token = 2 * layers * (groups > 0 ? groups : heads) * one, .is_estimate = false};
    }
    elements.context = static_cast<int>(
        std::min<std::uint64_t>(number_at(config, {"max_position_embeddings", "n_positions"}), 1 << 30));
  }
  if (elements.context == 0)
    elements.context = static_cast<int>(std::min<std::uint64_t>(found.gguf_context, 1 << 30));
  if (elements.is_estimate && parameters > 0) {
    elements.per_token =
        static_cast<std::uint64_t>(16'000 * std::pow(static_cast<double>(parameters) / 1e9, 0.6));
  }
  return elements;
}

SearchResult judge(const hub::FoundOnHub& found, const LocalMemory& memory) {
  SearchResult result = {.id = found.id,
                         .format = format_of(found),
                         .gated = found.gated,
                         .updated = found.last_modified.substr(0, 10)};
  result.parameters = found.parameters;
  result.downloads = found.downloads;
  result.likes = found.likes;
  result.bytes = !found.safetensors.empty() ? weight_bytes(found.safetensors) : found.gguf_bytes;
  if (result.bytes == 0 || memory.bytes == 0) return result;
  // An estimate of the workspace and the program itself; the cache gets the same share of the rest as in the
  // engine.
  const std::uint64_t needed = result.bytes + result.bytes / 50 + (std::uint64_t{256} << 20);
  result.fits = needed < memory.bytes;
  const CacheElements cache = cache_elements(found, found.parameters);
  result.is_estimate = cache.is_estimate;
  if (!*result.fits || cache.per_token == 0) return result;
  const std::uint64_t tokens = cache_budget(memory.bytes - needed) /
                               (cache.per_token * static_cast<std::uint64_t>(memory.cache_element));
  const auto max_context = static_cast<std::uint64_t>(cache.context > 0 ? cache.context : 131'072);
  result.context = static_cast<int>(std::min(tokens, max_context));
  if (result.context < 256) result.fits = false;
  return result;
}

std::string search_table(const std::vector<SearchResult>& results, const LocalMemory& memory) {
  std::vector<std::vector<std::string>> rows;
  for (const SearchResult& result : results) {
    rows.push_back({result.id, result.format, short_parameters(result.parameters),
                    result.bytes > 0 ? human_size(result.bytes) : "-", short_count(result.downloads),
                    short_count(result.likes), result.gated.empty() ? "open" : "gated",
                    fit_of(result, memory)});
  }
  return text_table({{"MODEL"},
                     {"FORMAT"},
                     {"PARAMETERS", Align::right},
                     {"SIZE", Align::right},
                     {"DOWNLOADS", Align::right},
                     {"LIKES", Align::right},
                     {"LICENCE"},
                     {"FITS"}},
                    rows);
}

std::string search_json(const std::vector<SearchResult>& results) {
  Json all = Json::array();
  for (const SearchResult& result : results) {
    Json one = {{"id", result.id},
                {"format", result.format},
                {"parameters", result.parameters},
                {"bytes", result.bytes},
                {"downloads", result.downloads},
                {"likes", result.likes},
                {"gated", result.gated.empty() ? Json(false) : Json(result.gated)},
                {"updated", result.updated},
                {"fits", result.fits ? Json(*result.fits) : Json(nullptr)},
                {"context", result.context},
                {"context_is_estimate", result.is_estimate}};
    all.push_back(std::move(one));
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace inferno
