// What was typed before: a bounded list, and the file it lives in between sessions.
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
  // Reads the entries of a file, the oldest first; one that is not there is an empty history. Entries are
  // lines, with \n and \\ for line breaks and backslashes.
  explicit History(std::filesystem::path file);

  const std::vector<std::string>& entries() const { return entries_; }
  // Blank entries and repetitions of the newest are not kept. The file gets the entry at once, so that
  // several sessions can share it. A file that cannot be written does not end a conversation: the answer is
  // false then.
  bool add(const std::string& entry);

 private:
  bool append(const std::string& entry) const;
  void shorten_file() const;

  std::optional<std::filesystem::path> file_;
  std::vector<std::string> entries_;
};

}  // namespace inferno::terminal
