// Stop strings in a stream of text, also across the borders of its pieces. What is returned never holds a
// stop string or a part of one, and nothing is held back that could be shown: only the longest end of the
// text that may still become a stop string waits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

class StopMatcher {
 public:
  // Empty stop strings are ignored: they would stop every reply before its first letter.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // The text that is safe to show now. The stop string that ends first wins, of several ending together the
  // longest. Once stopped, everything further is dropped.
  std::string push(std::string_view text);
  // The text that waited for a stop string that did not come.
  std::string finish();

  bool stopped() const { return !matched_.empty(); }
  const std::string& matched() const { return matched_; }  // the stop string that was found; empty when none

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t> fallback;  // [n]: the longest proper prefix of the first n bytes that ends them
    std::size_t seen = 0;               // bytes of `text` that the stream ends with
  };
  static void advance(Stop& stop, char byte);
  // Adds one byte; true when a stop string is complete.
  bool take(char byte, std::string& shown);

  std::vector<Stop> stops_;
  std::string held_;
  std::string matched_;
};

}  // namespace inferno
