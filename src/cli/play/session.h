// `play`: a conversation with a model, entry by entry.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "cli/model_choice.h"
#include "cli/play/answer_view.h"
#include "cli/play/console.h"
#include "cli/play/slash_command.h"
#include "cli/play/talk.h"
#include "cli/text_model.h"

namespace inferno::play {

struct PlayOptions {
  std::string model, system;
  TextModelOptions text_model;
  TextRequest request;                  // sampling and thinking; the prompt is typed
  std::optional<bool> shows_reasoning;  // nullopt: on a terminal
  bool shows_stats = true;
  bool yes = false;  // a model that is not here is downloaded without asking
};

// A setting that would have no effect is not taken.
[[noreturn]] void refuse_logprobs();

class Session {
 public:
  Session(PlayOptions options, Console& console, std::vector<FoundModel> found);

  // Until the user leaves. Returns the exit code.
  int run();

 private:
  // The first thing a user sees. False when he leaves instead of choosing.
  bool choose();
  void load(const ChosenModel& chosen);
  void greet() const;
  bool completes() const { return model_->chat() == nullptr; }

  // False when the session is over.
  bool take(const terminal::Entry& entry);
  bool obey(const SlashCommand& command);
  void ask(const std::string& question);
  void answer(const TextRequest& request);

  // Commands; session_commands.cpp.
  void help() const;
  void set_system(const std::string& text);
  void set(const std::string& arguments);
  void set_named(const std::string& name, const std::string& value);
  void set_think(const std::string& value);
  void show() const;
  void show_settings() const;
  void load_other(const std::string& name);
  void save(const std::string& file) const;
  void open(const std::string& file);
  void regenerate();
  void undo();
  void stats() const;

  PlayOptions options_;
  Console& console_;
  std::vector<FoundModel> found_;
  std::optional<SignalWatcher> interrupt_;
  ChosenModel chosen_;
  std::unique_ptr<TextModel> model_;
  Talk talk_;
  Tally tally_;
  std::vector<TokenId> sequence_;  // prompt and answer of the last turn, as the engine remembers them
  bool is_read_ = true;            // somebody still reads what is written
  int exit_code_ = 0;
};

}  // namespace inferno::play
