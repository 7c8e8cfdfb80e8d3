// `play`: an interactive conversation with a model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "catalogue/catalogue.h"
#include "cli/loading.h"
#include "cli/play/answer_view.h"
#include "cli/play/console.h"
#include "cli/play/slash_command.h"
#include "cli/play/transcript.h"

namespace inferno::play {

struct PlayOptions {
  std::string system;
  LoadOptions load;
  TextRequest request;                  // sampling and thinking; the prompt is typed
  std::optional<bool> shows_reasoning;  // nullopt: on a terminal
  bool shows_stats = true;
};

// play cannot show log probabilities, so it refuses the setting.
[[noreturn]] void refuse_logprobs();

class Session {
 public:
  // Without a `model` the user chooses one, or gets the built-in one if there is no choice.
  Session(PlayOptions options, Console& console, const Catalogue& catalogue,
          std::optional<ResolvedModel> model);

  // Runs until the user leaves and returns the exit code.
  int run();

 private:
  // Lets the user choose a model unless one was given. False if the user left instead.
  bool choose();
  void load(const ResolvedModel& chosen);
  void greet() const;
  bool completes_text() const { return model_->chat() == nullptr; }

  // False if the session is over.
  bool handle(const terminal::Entry& entry);
  bool run_command(const SlashCommand& command);
  void ask(const std::string& question);
  void answer(const TextRequest& request);

  // The slash commands.
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
  void show_stats() const;

  PlayOptions options_;
  Console& console_;
  const Catalogue& catalogue_;
  std::optional<SignalWatcher> interrupt_;
  std::optional<ResolvedModel> chosen_;
  std::unique_ptr<TextModel> model_;
  Transcript transcript_;
  SessionStats stats_;
  std::vector<TokenId> sequence_;  // prompt and answer of the last turn, as in the prefix cache
  bool has_reader_ = true;         // false after the reader closed stdout
  int exit_code_ = 0;
};

}  // namespace inferno::play
