#include "library/load_options.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "catalogue/user_folders.h"
#include "library/border.h"
#include "model/export/weight_types.h"

namespace inferno::library {
namespace {

namespace fs = std::filesystem;

constexpr int max_parallel = 1024, max_threads = 1024, max_context = 1 << 30, max_requests = 1 << 24;

int in_range(std::string_view field, int value, int low, int high) {
  if (value >= low && value <= high) return value;
  fail(ErrorKind::invalid_request,
       fmt::format("inferno_load_options.{}: expected {} to {}, found {}", field, low, high, value));
}

std::string text_or_empty(const char* text, std::string_view field) {
  return text == nullptr ? std::string() : text_at(text, field);
}

std::optional<fs::path> folder(const char* text, std::string_view field) {
  std::string path = text_or_empty(text, field);
  return path.empty() ? std::nullopt : std::optional<fs::path>(std::move(path));
}

// According to the user database: the environment belongs to the program.
std::optional<fs::path> home_of_user() {
  std::vector<char> memory(16384);
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, memory.data(), memory.size(), &found) != 0 || found == nullptr) return {};
  if (found->pw_dir == nullptr || *found->pw_dir == '\0') return {};
  return fs::path(found->pw_dir);
}

std::vector<fs::path> split(const std::string& list) {
  std::vector<fs::path> folders;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) folders.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

CatalogueSettings catalogue_settings(const inferno_load_options& options) {
  UserFolders folders;
  folders.home = options.home == nullptr ? home_of_user() : folder(options.home, "home");
  folders.cache = folder(options.cache, "cache");
  folders.hub_cache = folder(options.hub_cache, "hub_cache");
  if (!folders.hub_cache && folders.home) folders.hub_cache = *folders.home / ".cache/huggingface/hub";
  folders.models = split(text_or_empty(options.model_folders, "model_folders"));
  return {.places = model_places(folders), .unpack_folders = unpack_folders(folders)};
}

}  // namespace

void Log::operator()(inferno_log_level level, const std::string& message) const {
  if (callback == nullptr) return;
  const InReport marker;
  try {
    callback(context, level, message.c_str());
  } catch (...) {
    // A callback in C++ that throws: there is no one to tell.
  }
}

bool Progress::operator()(std::uint64_t done, std::uint64_t total) const {
  if (callback == nullptr) return true;
  const InReport marker;
  try {
    return callback(context, done, total) == 0;
  } catch (...) {
    return false;
  }
}

LoadSettings read_load_options(const inferno_load_options* given) {
  const inferno_load_options options = read_options(given, "inferno_load_options");
  TextModelOptions model;
  model.device.device = text_or_empty(options.device, "device");
  if (model.device.device.empty()) model.device.device = "auto";
  model.device.threads = in_range("threads", options.threads, 0, max_threads);
  model.device.cache =
      parse_cache_choice(text_or_empty(options.cache_type, "cache_type"), "inferno_load_options.cache_type");
  model.device.quantize = text_or_empty(options.quantize, "quantize");
  parse_quantize(model.device.quantize, "inferno_load_options.quantize");  // throws
  model.context = in_range("context", options.context, 0, max_context);
  model.parallel = std::max(1, in_range("parallel", options.parallel, 0, max_parallel));
  model.deterministic = options.deterministic != 0;
  model.max_step_tokens = in_range("max_step_tokens", options.max_step_tokens, 0, max_requests);
  model.max_waiting = in_range("max_waiting", options.max_waiting, 0, max_requests);
  model.cache_bytes = options.cache_bytes;
  model.chat_template_file = text_or_empty(options.chat_template_file, "chat_template_file");
  return {.model = std::move(model),
          .catalogue = catalogue_settings(options),
          .log = {options.log, options.log_context},
          .progress = {options.progress, options.progress_context}};
}

}  // namespace inferno::library
