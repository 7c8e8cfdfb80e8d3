// `play`: an interactive conversation with a model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "catalogue/catalogue.h"
#include "cli/loading.h"
#include "cli/play/answer_view.h"
#include "cli/play/console.h"
#include "cli/play/conversations.h"
#include "cli/play/slash_command.h"
#include "cli/play/transcript.h"

namespace inferno::play {

// What happens when a conversation no longer fits the context.
enum class OnFull { drop, stop };

struct PlayOptions {
  std::string system;
  LoadOptions load;
  TextRequest request;                  // sampling and thinking; the prompt is typed
  std::optional<bool> shows_reasoning;  // nullopt: on a terminal
  bool shows_stats = true;
  bool is_plain = false;  // answers as the model wrote them: no colours, tables or line breaks are added
  OnFull on_full = OnFull::drop;
  bool continues = false;  // with the last conversation that was kept
};

// What /set changes, for completion.
std::vector<std::string> setting_names();

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
  // Lets the user choose a model unless one was given or the conversation to continue names one. False if the
  // user left instead.
  bool choose();
  bool choose_last();  // the model of the last conversation; false if there is none on this machine
  void load(const ResolvedModel& chosen);
  void greet() const;
  bool completes_text() const { return model_->chat() == nullptr; }

  // False if the session is over.
  bool handle(const terminal::Entry& entry);
  bool run_command(const SlashCommand& command);
  // A message as it was typed: puts the files in that it names.
  void send(const std::string& message);
  void ask(const std::string& question);
  // The request for the conversation so far. Drops the oldest turns if it does not fit the context, or is
  // Error{invalid_request} if that is not wanted or not enough.
  PreparedRequest prepare_to_fit();
  TextRequest conversation() const;  // so far, as a request
  void answer();
  ViewOptions view_options() const;
  std::optional<terminal::Completion> completed(std::string_view before_cursor) const;
  ContextUse context_use() const;
  std::size_t count_tokens() const;  // of the conversation, as the model sees it
  void warn_of_full_context();

  // The slash commands.
  void help() const;
  void start_over();
  void set_system(const std::string& text);
  void set(const std::string& arguments);
  void set_named(const std::string& name, const std::string& value);
  void set_think(const std::string& value);
  void show() const;
  void show_settings() const;
  void load_other(const std::string& name);
  ResolvedModel named_or_numbered(const std::string& name) const;  // as /load lists them
  void save(const std::string& file, bool replaces_any);
  void open(const std::string& file);
  void open_kept(std::size_t number);  // 1 is the newest
  void list_kept() const;
  void copy() const;
  void edit(const std::string& text);
  void regenerate();
  void undo();
  void show_stats() const;
  void show_context() const;

  PlayOptions options_;
  Console& console_;
  const Catalogue& catalogue_;
  std::optional<SignalWatcher> interrupt_;
  std::optional<ResolvedModel> chosen_;
  std::unique_ptr<TextModel> model_;
  Transcript transcript_;
  Conversations kept_;
  bool warned_of_keeping_ = false;
  SessionStats stats_;
  std::vector<TokenId> sequence_;  // prompt and answer of the last turn, as in the prefix cache
  bool is_in_sequence_ = false;    // it is the conversation, which has not been opened or shortened since
  SavedFiles saved_;
  bool warned_of_context_ = false;  // since the last new conversation
  bool has_reader_ = true;          // false after the reader closed stdout
  int exit_code_ = 0;
};

}  // namespace inferno::play
