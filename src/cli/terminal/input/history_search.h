// Reverse search in the history, as readline has it: every letter narrows it, Ctrl-R goes to an older entry.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

class HistorySearch {
 public:
  // `entries`, oldest first, must outlive the search. It begins at the newest entry, with an empty query.
  explicit HistorySearch(std::span<const std::string> entries);

  void add(std::string_view letters);
  // Removes the last character of the query and returns to the entry that was found for the rest.
  void remove_last();
  void older();

  struct Match {
    std::size_t entry = 0, at = 0;  // the entry and the offset of the query in it
  };
  // The last entry found; nullopt before the first. It stays when a longer query is not found.
  const std::optional<Match>& match() const { return steps_.back().match; }
  // "(reverse-i-search)`que': ", or "(failed reverse-i-search)`quex': ".
  std::string prompt() const;

 private:
  // The state after each change of the query, so that Backspace can return to it.
  struct Step {
    std::string query;
    std::optional<Match> match;
    bool failed = false;
  };
  // Searches entries before `end`, newest first.
  Step found(std::string query, std::size_t end) const;

  std::span<const std::string> entries_;
  std::vector<Step> steps_;
};

}  // namespace inferno::terminal
