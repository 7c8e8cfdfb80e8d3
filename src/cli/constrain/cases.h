// Constraints and the texts they are checked with, one JSON object a line: what `inferno constrain` reads and
// writes (docs/constrained.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace inferno::constrain {

enum class Kind { schema, grammar, regex, choices, request };

// A text to be checked: bytes, with control tokens between them.
struct Piece {
  bool is_control = false;
  std::string text;
};
using Text = std::vector<Piece>;

struct Case {
  std::string id;  // as JSON, with quotes; empty: none
  Kind kind = Kind::schema;
  std::string source;  // a schema, a list of choices or a request as JSON, anything else as it is
  std::vector<Text> texts;
};

struct Settings {
  const Tokenizer& tokenizer;
  const ChatFormat* chat = nullptr;  // for requests; nullptr: the model has no chat format
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  bool compact_whitespace = false;
  bool verify_masks = false;
};

// Of a file with {"text": …} on each line.
std::vector<Text> read_texts(std::string_view lines);

// What following the texts of a case cost.
struct CaseCosts {
  double compile_ms = 0.0;
  std::vector<double> masks_us;  // of each mask, in the order of the texts
  std::int64_t tokens = 0;       // that were taken
  std::int64_t forced = 0;       // of those: no other token was allowed, and the text could not end
  std::int64_t ended = 0;        // texts that could not be followed within the limits
};

// The line that describes the outcome. RefusedError if the constraint is refused.
std::string run_case(const Settings& settings, const Case& one);
// The line that describes why it is refused.
std::string describe(const Case& one, const grammar::Refusal& refusal);
// Follows the texts token by token only. RefusedError if the constraint is refused.
CaseCosts measure_case(const Settings& settings, const Case& one);
// One for each line that is not empty. Error{invalid_request} for a line that is no case.
void for_each_case(std::string_view lines, const std::function<void(const Case&)>& use);
// All lines of a file; refusals are answers. Error{invalid_request} for a line that is no case.
void run_cases(const Settings& settings, std::string_view lines,
               const std::function<void(const std::string&)>& write);

}  // namespace inferno::constrain
