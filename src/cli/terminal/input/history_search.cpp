#include "cli/terminal/input/history_search.h"

#include <fmt/format.h>

namespace inferno::terminal {

HistorySearch::HistorySearch(std::span<const std::string> entries) : entries_(entries), steps_(1) {}

HistorySearch::Step HistorySearch::found(std::string query, std::size_t end) const {
  for (std::size_t entry = end; entry > 0; --entry) {
    const std::size_t at = entries_[entry - 1].rfind(query);
    if (at == std::string::npos) continue;
    return {.query = std::move(query), .match = Match{.entry = entry - 1, .at = at}, .failed = false};
  }
  return {.query = std::move(query), .match = match(), .failed = true};
}

void HistorySearch::add(std::string_view letters) {
  // The entry that was found may contain the longer query, too.
  const std::size_t end = match() ? match()->entry + 1 : entries_.size();
  steps_.push_back(found(steps_.back().query + std::string(letters), end));
}

void HistorySearch::remove_last() {
  // Steps of Ctrl-R have the same query.
  const std::size_t length = steps_.back().query.size();
  while (steps_.size() > 1 && steps_.back().query.size() == length) steps_.pop_back();
}

void HistorySearch::older() {
  const Step& last = steps_.back();
  if (last.query.empty()) return;
  steps_.push_back(found(last.query, match() ? match()->entry : entries_.size()));
}

std::string HistorySearch::prompt() const {
  return fmt::format("({}reverse-i-search)`{}': ", steps_.back().failed ? "failed " : "",
                     steps_.back().query);
}

}  // namespace inferno::terminal
