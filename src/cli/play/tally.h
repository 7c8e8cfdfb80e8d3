// What an answer and a whole session cost, in one line each.
#pragma once

#include <string>

#include "cli/answer.h"

namespace inferno::play {

// "130 tokens, 812.5 tokens/s, first after 12.3 ms; prompt: 58 tokens, 32 of them cached"
std::string answer_line(const Answer& answer);

struct Tally {
  int answers = 0;
  long prompt_tokens = 0, cached_tokens = 0, written_tokens = 0;
  long decoded_tokens = 0;  // written but for the first of each answer
  double prompt_seconds = 0, decode_seconds = 0;

  void add(const Answer& answer);
};

std::string session_lines(const Tally& tally);

}  // namespace inferno::play
