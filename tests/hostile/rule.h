// The rule that every model file must meet, however it was made: it loads, or it is refused with an error
// that names it, in bounded time and memory, and in the same words the second time.
#pragma once

#include <gtest/gtest.h>

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
  std::uint64_t bytes = 0;  // what the load may allocate for
  std::function<void()> load;
};

struct Verdict {
  std::string broken;  // which part of the rule, empty when it holds
  std::optional<ErrorKind> refused;
  std::string message;
};

// Loads the file twice.
Verdict judge(const HostileFile& file);

// For a sweep of many files: gathers verdicts and keeps the first few that break the rule.
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
