// The regular expressions with which a quantization config names modules. They come from an untrusted file,
// so the steps of a match, its memory and the time of all matches together are limited.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace inferno {

// Shared by the patterns of one config.
class PatternBudget {
 public:
  // Error{unsupported} naming the pattern if all matches so far took longer than allowed.
  void spend(std::chrono::nanoseconds time, std::string_view pattern, std::string_view where);

 private:
  std::chrono::nanoseconds spent_{0};
};

// Matches from the start of a name, as Python's re.match does.
class ModulePattern {
 public:
  // `where` names the file and field, for messages. Error{unsupported} if the expression is not valid or is
  // too long.
  ModulePattern(std::string_view pattern, std::string_view where, std::shared_ptr<PatternBudget> budget);

  const std::string& text() const { return text_; }
  // Error{unsupported} if the match takes too many steps.
  bool matches(std::string_view module) const;

 private:
  std::string text_, where_;
  std::shared_ptr<PatternBudget> budget_;
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace inferno
