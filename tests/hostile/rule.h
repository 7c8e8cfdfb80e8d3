// The rule for every model file: it loads, or it is refused with an error that names the file, in bounded
// time and memory, and with the same message the second time.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace inferno {

struct HostileFile {
  std::string_view name;    // must occur in the message
  std::uint64_t bytes = 0;  // file size, which bounds the allocations
  std::function<void()> load;
};

struct Verdict {
  std::string broken;  // the part of the rule that was broken; empty if none
  std::optional<ErrorKind> refused;
  std::string message;
};

// Loads the file twice.
Verdict judge(const HostileFile& file);

// The values that a sweep writes into a length, an offset or a count: the limits of the integer types and the
// neighbours of `value`.
std::array<std::uint64_t, 16> edge_values(std::uint64_t value);

// For a sweep over many files: collects verdicts and keeps the first few that break the rule.
class Sweep {
 public:
  void add(const std::string& variant, const HostileFile& file);
  std::size_t loaded() const { return loaded_; }
  std::size_t refused() const { return refused_; }
  testing::AssertionResult result() const;

 private:
  std::size_t loaded_ = 0, refused_ = 0, broken_ = 0;
  std::string report_;
};

}  // namespace inferno
