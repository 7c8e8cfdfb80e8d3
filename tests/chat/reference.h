// The public templates and conversations in ../shared/reference/chat with the output of Python's Jinja2. The
// folder is not part of the repository; tests that need it are skipped if it is absent.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "chat/jinja/template.h"
#include "chat/json.h"
#include "support/paths.h"

namespace inferno::reference {

// nullopt if the folder is absent.
inline std::optional<std::filesystem::path> chat_folder() {
  const auto shared = testing::shared_reference();
  if (!shared || !std::filesystem::is_directory(*shared / "chat")) return std::nullopt;
  return *shared / "chat";
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
