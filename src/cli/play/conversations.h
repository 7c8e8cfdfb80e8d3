// Conversations that are kept between sessions: one JSON file each, readable by its owner only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/play/transcript.h"

namespace inferno::play {

struct KeptConversation {
  std::filesystem::path file;
  std::string title;  // the first question, shortened
  std::string model;
  std::string begun;  // when, as "2026-11-19 04:05" of local time; empty if its name does not tell
  std::size_t turns = 0;
};

class Conversations {
 public:
  static constexpr std::size_t max_kept = 200;

  enum class New { kept, not_kept };

  // An empty folder keeps nothing. Without new ones, only those that were opened with go_on_with() are
  // written.
  explicit Conversations(std::filesystem::path folder, New is_new = New::kept)
      : folder_(std::move(folder)), new_(is_new) {}

  // Writes the conversation to its file, for which begin() chooses a new name. False if it cannot be written,
  // which must not end a conversation.
  bool keep(const Transcript& transcript, const std::string& model);
  void begin() { file_.clear(); }
  // Further turns go to this file.
  void go_on_with(std::filesystem::path file) { file_ = std::move(file); }

  // The newest first, at most `count`. Files of another form are skipped.
  std::vector<KeptConversation> newest(std::size_t count) const;

 private:
  void remove_oldest() const;
  std::vector<std::filesystem::path> files() const;  // the newest first

  std::filesystem::path folder_, file_;
  New new_;
};

// The conversation as a Markdown document.
std::string as_markdown(const Transcript& transcript, const std::string& model);

// Writes the conversation to a file of the user's, which stays as it was if that fails: as Markdown if its
// name ends with .md, else as JSON.
void save_conversation(const Transcript& transcript, const std::string& model,
                       const std::filesystem::path& file);

// Whether saving to this name loses nothing but a conversation: there is no such file, or it has the form
// that save_conversation() writes and nothing besides. True also for what is no regular file, which the
// attempt to write will tell.
bool may_replace(const std::filesystem::path& file);

// The files that were saved in this session, which may be replaced as long as nothing else changes them.
class SavedFiles {
 public:
  // Why saving to this name would lose something; empty if it would not.
  std::string objection(const std::filesystem::path& file) const;
  // Call it after the file was written.
  void remember(const std::filesystem::path& file);

 private:
  struct Written {
    std::uintmax_t size = 0;
    std::filesystem::file_time_type time;

    bool operator==(const Written&) const = default;
  };
  static std::optional<Written> now(const std::filesystem::path& file);  // nullopt if it is no regular file

  std::map<std::filesystem::path, Written> files_;
};

}  // namespace inferno::play
