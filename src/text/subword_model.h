// What turns one piece of pre-split text into tokens. Thread-safe: encode keeps its state on the stack.
#pragma once

#include <string_view>
#include <vector>

#include "base/token.h"

namespace inferno {

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  // Appends the tokens of `piece`, which is not empty.
  virtual void encode(std::vector<TokenId>& out, std::string_view piece) const = 0;
};

}  // namespace inferno
