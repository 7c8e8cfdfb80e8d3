// Answers to a prompt or to a file of requests: what `generate` does, and `play` if it is given a prompt.
// Only the result goes to stdout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/loading.h"

namespace inferno {

struct GenerateOptions {
  std::string model, argument, prompt, file, batch, output, system;
  bool has_argument = false, has_prompt = false, chat = false, raw = false, json = false, yes = false,
       quiet = false;
  bool mentions_raw = true;  // in a note, if a model with a chat template gets the prompt as a message
  std::optional<bool> stream;
  int parallel = 16;
  TextRequest request;
  // Of the answer.
  std::string schema, regex, grammar, tools, tool_choice;
  std::vector<std::string> choices;
  std::string whitespace;
  bool json_object = false;
  LoadOptions load;
};

// Throws Exit after Ctrl-C and if lines of a batch failed.
void generate_answers(GenerateOptions& options);

}  // namespace inferno
