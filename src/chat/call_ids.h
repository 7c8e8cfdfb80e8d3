// Ids for the tool calls of a reply. They follow from the conversation, so that a reply parsed twice names
// its calls alike, and differ from turn to turn, because the conversation has grown.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "chat/chat_format.h"

namespace inferno {

class CallIds {
 public:
  CallIds() = default;
  explicit CallIds(const Conversation& conversation);
  // Nine letters and digits, the form Mistral's templates insist on, behind "call_" unless `bare`.
  std::string make(int index, bool bare = false) const;

 private:
  std::uint64_t seed_ = 0;
};

// The names of the functions that the conversation offers.
std::set<std::string, std::less<>> offered_functions(const Conversation& conversation);

}  // namespace inferno
