// The conversation so far in `play`: a system prompt, and turns of question and answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/json.h"

namespace inferno::play {

struct Turn {
  std::string question = {};
  std::string answer = {}, reasoning = {};
  Json tool_calls = Json::array();
  std::string finish_reason = {};  // empty until the question is answered
};

class Transcript {
 public:
  const std::vector<Turn>& turns() const { return turns_; }
  const std::string& system() const { return system_; }
  void set_system(std::string system) { system_ = std::move(system); }

  void ask(std::string question);  // begins a turn
  void answer(Turn answered);      // completes it and keeps its question
  void clear() { turns_.clear(), dropped_ = 0; }
  // Removes the last turn and returns its question; nullopt if there is none.
  std::optional<std::string> undo();

  // Leaves the oldest turn that is still there out of messages() and text(), but not out of saved(). False if
  // only the last turn is left.
  bool drop_oldest();
  std::size_t dropped() const { return dropped_; }

  // The conversation as messages of a chat format, the unanswered question last.
  Json messages() const;
  // The text to complete: everything since the model last ended a text by itself.
  std::string text() const;

  // What /save writes: {"model", "system", "messages"}.
  Json saved(const std::string& model) const;
  // Error{invalid_request} if `saved` has another form; then nothing has changed.
  void open(const Json& saved);

 private:
  std::string system_;
  std::vector<Turn> turns_;
  std::size_t dropped_ = 0;  // oldest turns that the model no longer sees
};

}  // namespace inferno::play
