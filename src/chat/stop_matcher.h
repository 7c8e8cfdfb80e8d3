// Finds stop strings in a stream of text, across the boundaries of its pieces. The returned text never
// contains a stop string or a part of one, and no more is held back than the longest suffix that may still
// become one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

class StopMatcher {
 public:
  // Empty stop strings are ignored: they would stop every reply at once.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // The text that is safe to show now. The stop string that ends first wins; if several end together, the
  // longest. All text after it is dropped.
  std::string push(std::string_view text);
  // The text that was held back, because it ends here. What is pushed next is a text of its own.
  std::string finish();

  bool stopped() const { return !matched_.empty(); }
  const std::string& matched() const { return matched_; }  // the stop string that was found; empty if none

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t>
        fallback;          // [n]: length of the longest proper prefix that is a suffix of n bytes
    std::size_t seen = 0;  // number of bytes of `text` at the end of the stream
  };
  static void advance(Stop& stop, char byte);
  // Adds one byte; true if it completes a stop string.
  bool take(char byte, std::string& shown);

  std::vector<Stop> stops_;
  std::string held_;
  std::string matched_;
};

}  // namespace inferno
