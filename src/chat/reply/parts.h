// Building the parts of a reply, and the ids of its tool calls.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/chat_format.h"

namespace inferno {

// Merges adjacent parts of the same kind and drops empty ones.
class ReplyParts {
 public:
  void content(std::string_view text);
  void reasoning(std::string_view text);
  void open_call(int index, std::string id, std::string name);
  void arguments(int index, std::string_view text);
  // Only the first warnings are kept: a reply may violate its protocol at every token.
  void warning(std::string text);

  std::vector<ReplyPart> take() { return std::exchange(parts_, {}); }

 private:
  std::vector<ReplyPart> parts_;
  int warnings_ = 0;
};

// The ids are derived from Conversation::call_seed: a reply that is parsed twice with the same seed gets the
// same ids.
class CallIds {
 public:
  CallIds() = default;
  explicit CallIds(const Conversation& conversation);
  // Nine letters and digits, as Mistral's templates require, after the prefix "call_" unless `bare`.
  std::string make(int index, bool bare = false) const;

 private:
  std::uint64_t seed_ = 0;
};

// The names of the functions that the conversation offers.
std::set<std::string, std::less<>> offered_functions(const Conversation& conversation);

}  // namespace inferno
