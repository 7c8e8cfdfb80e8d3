// Messages for command lines that cannot be parsed: in the order typed, and with the name that was meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

// "a, b or c"
std::string listed(std::span<const std::string> words, std::string_view last = "or");

// The option here that does what this one of llama.cpp, vLLM or Ollama does; empty if there is none.
std::string_view counterpart_of(std::string_view name);

}  // namespace inferno
