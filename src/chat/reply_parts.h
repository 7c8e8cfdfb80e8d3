// Collects the parts of a reply: neighbours of one kind become one part, empty ones vanish.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/chat_format.h"

namespace inferno {

class ReplyParts {
 public:
  void content(std::string_view text);
  void reasoning(std::string_view text);
  void open_call(int index, std::string id, std::string name);
  void arguments(int index, std::string_view text);
  // Of a reply that breaks its protocol at every token only the first warnings are worth sending.
  void warning(std::string text);

  std::vector<ReplyPart> take() { return std::exchange(parts_, {}); }

 private:
  std::vector<ReplyPart> parts_;
  int warnings_ = 0;
};

}  // namespace inferno
