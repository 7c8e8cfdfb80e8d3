// Where models are kept, and which environment variables have a say in things.
#include <fmt/format.h>
#include <unistd.h>

#include "base/sizes.h"
#include "cli/doctor/doctor.h"

namespace inferno::doctor {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t little_space = std::uint64_t{5} << 30;

// The folder itself or, before it exists, the nearest one above it that does: there it would be created.
fs::path nearest_existing(const fs::path& path) {
  fs::path nearest, longer;
  std::error_code status;
  for (const fs::path& part : path) {
    longer /= part;
    if (!fs::exists(longer, status)) break;
    nearest = longer;
  }
  return nearest.empty() ? fs::path(".") : nearest;
}

int models_in(const fs::path& folder) {
  int models = 0;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    models += entry.path().filename().native().starts_with("models--") ? 1 : 0;
  }
  return models;
}

}  // namespace

Finding examine_cache(const Sources& sources) {
  const auto cache = sources.environment.hub_cache();
  if (!cache) {
    return {.check = "cache",
            .verdict = Verdict::warn,
            .summary = "no folder: neither HOME nor HF_HOME is set and the user has no home directory",
            .next = "export HF_HOME=/some/folder",
            .facts = Json::object()};
  }
  std::error_code status;
  const bool exists = fs::is_directory(cache->path, status);
  const fs::path nearest = nearest_existing(cache->path);
  const bool folder = fs::is_directory(nearest, status);
  const bool writable = folder && access(nearest.c_str(), W_OK | X_OK) == 0;
  const fs::space_info space = fs::space(nearest, status);
  const std::uint64_t free = status ? 0 : space.available;
  const int models = exists ? models_in(cache->path) : 0;

  Finding finding = {.check = "cache",
                     .facts = {{"path", cache->path.string()},
                               {"said_by", cache->said_by},
                               {"exists", exists},
                               {"writable", writable},
                               {"free_bytes", free},
                               {"models", models}}};
  finding.summary = fmt::format("{} ({}), {}, {}, {} free", cache->path.string(), cache->said_by,
                                exists ? fmt::format("{} models", models) : "not there yet",
                                writable ? "writable" : "not writable", human_size(free));
  if (!writable) {
    finding.verdict = Verdict::warn;
    finding.next =
        fmt::format("make {} a folder you may write to, or point HF_HOME elsewhere", nearest.string());
  } else if (free < little_space) {
    finding.verdict = Verdict::warn;
    finding.next = "free some space, or point HF_HOME to a larger disk";
  }
  return finding;
}

Finding examine_settings(const Sources& sources) {
  std::vector<std::string> words;
  Json facts = Json::object();
  for (const HonouredVariable& variable : Environment::honoured()) {
    const auto value = sources.environment.get(variable.name);
    if (value) words.push_back(fmt::format("{}={}", variable.name, *value));
    facts[std::string(variable.name)] = value ? Json(*value) : nullptr;
  }
  return {.check = "settings",
          .summary = words.empty() ? "no environment variable that Inferno reads is set"
                                   : fmt::format("{}", fmt::join(words, " ")),
          .facts = std::move(facts)};
}

}  // namespace inferno::doctor
