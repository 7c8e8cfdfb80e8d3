// Entries typed earlier: a bounded list, and the file that keeps it between sessions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

class History {
 public:
  static constexpr std::size_t max_entries = 1000;

  History() = default;
  // Reads the file, oldest entry first; a missing file is an empty history. Each entry is one line, with \n
  // and \\ for line breaks and backslashes.
  explicit History(std::filesystem::path file);

  const std::vector<std::string>& entries() const { return entries_; }
  // Skips blank entries and repetitions of the newest one. Appends to the file at once, so that several
  // sessions can share it. False if the file cannot be written, which must not end a conversation.
  bool add(const std::string& entry);

 private:
  bool append(const std::string& entry) const;
  void shorten_file() const;

  std::optional<std::filesystem::path> file_;
  std::vector<std::string> entries_;
};

}  // namespace inferno::terminal
