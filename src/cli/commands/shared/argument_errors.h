// Messages for command lines that cannot be parsed: in the order typed, and with the name that was meant.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

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

// `take`, whose errors about a value name `next` where they do not say what to do next.
template <class Value>
std::function<void(const Value&)> with_advice(std::function<void(const Value&)> take,
                                              std::function<std::string()> next) {
  return [take = std::move(take), next = std::move(next)](const Value& value) {
    try {
      take(value);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_request || !error.advice().next.empty()) throw;
      fail(error.kind(), error.what(), {.why = error.advice().why, .next = next()});
    }
  };
}

}  // namespace inferno
