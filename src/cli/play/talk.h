// What was said so far in `play`: a system prompt and turns of question and answer. Knows no model.
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
  std::string finish_reason = {};  // empty while it is not answered
};

class Talk {
 public:
  const std::vector<Turn>& turns() const { return turns_; }
  const std::string& system() const { return system_; }
  void set_system(std::string system) { system_ = std::move(system); }

  void ask(std::string question);  // begins a turn
  void answer(Turn answered);      // ends it; the question stays
  void clear() { turns_.clear(); }
  // Takes the last turn back, and returns its question; nullopt when there is none.
  std::optional<std::string> undo();

  // The conversation as a chat format wants it, the unanswered question last.
  Json messages() const;
  // The text to complete: what was written since the model last ended a text by itself.
  std::string text() const;

  // {"model", "system", "messages"}: what /save writes.
  Json saved(const std::string& model) const;
  // Error{invalid_request} naming what is not of that form; then nothing has changed.
  void open(const Json& saved);

 private:
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace inferno::play
