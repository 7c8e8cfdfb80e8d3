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

// "did you mean NAME?"; empty for no name.
std::string question(const std::string& name);

// "--max_model_len" as "--max-model-len".
std::string with_dashes(std::string name);

// What is wrong with the value of a flag, "maybe" of --think=maybe; empty if nothing.
std::string switch_problem(std::string_view value);

// What a command with these arguments takes, for one that was given more.
std::string expected_arguments(const std::vector<std::string>& positionals);

}  // namespace inferno
