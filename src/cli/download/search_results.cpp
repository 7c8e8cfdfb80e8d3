#include "cli/download/search_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "checkpoint/safetensors/header.h"
#include "cli/download/family.h"
#include "cli/terminal/text_table.h"
#include "text/characters.h"

namespace inferno {
namespace {

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

std::string fit_of(const SearchResult& result, const LocalMemory& memory) {
  if (!result.is_supported) return fmt::format("no: {} is not supported", result.family);
  if (!result.fits) return "?";
  if (!*result.fits) return "no";
  if (result.context == 0) return "yes";
  const std::string context =
      result.context >= 1024 ? fmt::format("{} k", result.context / 1024) : fmt::format("{}", result.context);
  return fmt::format("{}, {}{}", memory.name, result.is_estimate ? "~" : "", context);
}

// A repository with both formats is judged by its safetensors, which a download prefers.
std::optional<Family> family_of(const hub::FoundOnHub& found) {
  const Json config = Json::parse(found.config, nullptr, /*allow_exceptions=*/false);
  const bool has_type =
      config.is_object() && config.contains("model_type") && config["model_type"].is_string();
  if (has_type && format_of(found) != "gguf")
    return Family{config["model_type"].get<std::string>(), Container::safetensors};
  if (!found.gguf_architecture.empty()) return Family{found.gguf_architecture, Container::gguf};
  return std::nullopt;
}

constexpr int min_name = 16, whole_name = 40;  // columns for the names of models

struct Column {
  TableColumn title;
  std::vector<std::string> cells;
};
using Columns = std::vector<Column>;

// The names come first.
Columns columns_of(const std::vector<SearchResult>& results, const LocalMemory& memory) {
  Columns all = {{{"MODEL"}, {}},
                 {{"FORMAT"}, {}},
                 {{"PARAMETERS", Align::right}, {}},
                 {{"SIZE", Align::right}, {}},
                 {{"DOWNLOADS", Align::right}, {}},
                 {{"LIKES", Align::right}, {}},
                 {{"LICENSE"}, {}},
                 {{"FITS"}, {}}};
  for (const SearchResult& result : results) {
    const std::vector<std::string> row = {result.id,
                                          result.format,
                                          result.parameters > 0 ? human_count(result.parameters) : "-",
                                          result.bytes > 0 ? human_size(result.bytes) : "-",
                                          short_count(result.downloads),
                                          short_count(result.likes),
                                          result.gated.empty() ? "open" : "gated",
                                          fit_of(result, memory)};
    for (std::size_t at = 0; at < all.size(); ++at) all[at].cells.push_back(row[at]);
  }
  return all;
}

// Of all columns but the first, with the blanks between columns.
int width_of_figures(const Columns& table) {
  int width = 0;
  for (const Column& column : std::span(table).subspan(1)) {
    int widest = columns(column.title.title);
    for (const std::string& cell : column.cells) widest = std::max(widest, columns(printable(cell)));
    width += widest + 2;
  }
  return width;
}

}  // namespace

std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters) {
  double bytes = 0;
  for (const auto& [name, count] : parameters) {
    const SafetensorsType* type = safetensors_type(name);
    bytes += static_cast<double>(count) * static_cast<double>(type == nullptr ? 2 : type->bytes);
  }
  return static_cast<std::uint64_t>(std::min(bytes, 1e18));
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
  if (const auto family = family_of(found)) {
    result.family = family->type;
    result.is_supported = family->is_supported();
  }
  if (!result.is_supported) {
    result.fits = false;
    return result;
  }
  if (result.bytes == 0 || memory.device.free_bytes == 0) return result;
  const EstimatedFit fit = estimate_fit({.weight_bytes = result.bytes,
                                         .parameters = found.parameters,
                                         .context = found.gguf_context,
                                         .config = found.config},
                                        memory.device);
  result.fits = fit.footprint.runs();
  result.context = fit.footprint.max_context;
  result.is_estimate = fit.is_estimate;
  return result;
}

std::string search_table(const std::vector<SearchResult>& results, const LocalMemory& memory,
                         int screen_columns) {
  Columns table = columns_of(results, memory);
  int longest = static_cast<int>(table.front().title.title.size());
  for (const std::string& name : table.front().cells) longest = std::max(longest, columns(printable(name)));
  if (screen_columns > 0) {
    const auto room = [&] { return screen_columns - 1 - width_of_figures(table); };
    for (const std::string_view least : {"LIKES", "FORMAT", "DOWNLOADS", "PARAMETERS", "LICENSE"}) {
      const int wanted = least == "LICENSE" ? min_name : std::min(longest, whole_name);
      if (room() >= wanted) break;
      std::erase_if(table, [&](const Column& column) { return column.title.title == least; });
    }
    for (std::string& name : table.front().cells)
      name = shortened(name, std::max(std::min(longest, room()), 1));
  }
  std::vector<TableColumn> titles;
  std::vector<std::vector<std::string>> rows(results.size());
  for (const Column& column : table) {
    titles.push_back(column.title);
    for (std::size_t at = 0; at < rows.size(); ++at) rows[at].push_back(column.cells[at]);
  }
  return text_table(titles, rows);
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
                {"family", result.family},
                {"supported", result.is_supported},
                {"fits", result.fits ? Json(*result.fits) : Json(nullptr)},
                {"context", result.context},
                {"context_is_estimate", result.is_estimate}};
    all.push_back(std::move(one));
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace inferno
