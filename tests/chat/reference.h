// The public templates and conversations of ../shared/reference/chat, with what Python's Jinja2 makes of
// them. The folder is not part of the repository; tests over it are skipped where it is absent.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "chat/jinja/template.h"

namespace inferno::reference {

// nullopt when neither $INFERNO_SHARED nor ../shared beside the source holds the folder.
inline std::optional<std::filesystem::path> chat_folder() {
  const char* given = std::getenv("INFERNO_SHARED");
  const std::filesystem::path shared = given != nullptr
                                           ? std::filesystem::path(given)
                                           : std::filesystem::path(INFERNO_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path folder = shared / "reference" / "chat";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "2025-08-05T14:30:00"
inline std::chrono::local_seconds parse_time(const std::string& text) {
  using namespace std::chrono;
  const auto part = [&](std::size_t at, std::size_t size) { return std::stoi(text.substr(at, size)); };
  const local_days date(year(part(0, 4)) / month(static_cast<unsigned>(part(5, 2))) /
                        day(static_cast<unsigned>(part(8, 2))));
  return date + hours(part(11, 2)) + minutes(part(14, 2)) + seconds(part(17, 2));
}

struct Suite {
  std::string name;
  std::string source;
  Json cases;
  jinja::RenderOptions options;
};

inline std::vector<Suite> suites(const std::filesystem::path& folder) {
  std::vector<Suite> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Json file = parse_json(read_file(entry.path()), entry.path().filename().string());
    Suite suite;
    suite.name = entry.path().stem().string();
    suite.source = read_file(std::filesystem::path(entry.path()).replace_extension(".jinja"));
    suite.cases = file.at("cases");
    const auto now = parse_time(file.at("now"));
    suite.options.clock = [now] { return now; };
    for (const char* token : {"bos_token", "eos_token"}) {
      if (file.contains(token) && file.at(token).is_string())
        suite.options.model_texts[token] = file.at(token);
    }
    all.push_back(std::move(suite));
  }
  return all;
}

}  // namespace inferno::reference
