// `play`: a conversation with a model, entry by entry.
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
#include "cli/play/talk.h"

namespace inferno::play {

struct PlayOptions {
  std::string system;
  LoadOptions load;
  TextRequest request;                  // sampling and thinking; the prompt is typed
  std::optional<bool> shows_reasoning;  // nullopt: on a terminal
  bool shows_stats = true;
};

// A setting that would have no effect is not taken.
[[noreturn]] void refuse_logprobs();

class Session {
 public:
  // Without a `model` the user chooses one, or gets the built-in one if there is no choice.
  Session(PlayOptions options, Console& console, const Catalogue& catalogue,
          std::optional<ResolvedModel> model);

  // Until the user leaves. Returns the exit code.
  int run();

 private:
  // The first thing a user sees. False when he leaves instead of choosing.
  bool choose();
  void load(const ResolvedModel& chosen);
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
  const Catalogue& catalogue_;
  std::optional<SignalWatcher> interrupt_;
  std::optional<ResolvedModel> chosen_;
  std::unique_ptr<TextModel> model_;
  Talk talk_;
  Tally tally_;
  std::vector<TokenId> sequence_;  // prompt and answer of the last turn, as the engine remembers them
  bool is_read_ = true;            // somebody still reads what is written
  int exit_code_ = 0;
};

}  // namespace inferno::play
