#include "cli/play/entry_completion.h"

#include <algorithm>
#include <system_error>

#include "cli/play/attachments.h"
#include "cli/play/slash_command.h"
#include "cli/terminal/input/key.h"

namespace inferno::play {
namespace {

namespace fs = std::filesystem;

using terminal::Candidate;
using terminal::Completion;

constexpr std::size_t max_files = 10000;  // of one folder that are looked at

Completion sorted(Completion completion) {
  std::ranges::sort(completion.candidates, {}, &Candidate::text);
  return completion;
}

Completion words_beginning(std::size_t begin, std::string_view typed, const std::vector<std::string>& words,
                           const std::string& ending) {
  Completion completion = {.begin = begin, .candidates = {}};
  for (const std::string& word : words) {
    if (word.starts_with(typed))
      completion.candidates.push_back({.text = word, .ending = ending, .shown = {}});
  }
  return sorted(std::move(completion));
}

struct FileName {
  std::string typed;  // with the folder as it was typed, and a slash after a folder
  std::string name;   // without its folder
  bool is_folder = false;
};

// The files whose paths begin with `typed`. Hidden ones only if their dot was typed.
std::vector<FileName> files_beginning(const std::string& typed, const CompletionSources& sources) {
  const std::size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  const std::string beginning = typed.substr(folder.size());
  std::vector<FileName> found;
  std::error_code problem;
  fs::directory_iterator entry(folder.empty() ? fs::path(".") : sources.path_of(folder), problem);
  for (std::size_t seen = 0; !problem && entry != fs::directory_iterator() && seen < max_files; ++seen) {
    std::string name = entry->path().filename().string();
    const bool is_hidden = name.starts_with('.') && !beginning.starts_with('.');
    // A name that could not be typed cannot be completed.
    if (name.starts_with(beginning) && !is_hidden && terminal::clean_input(name) == name) {
      std::error_code ignored;
      const bool is_folder = entry->is_directory(ignored);
      if (is_folder) name += '/';
      found.push_back({.typed = folder + name, .name = name, .is_folder = is_folder});
    }
    entry.increment(problem);
  }
  return found;
}

enum class Offered { files, folders };

Completion file_argument(std::size_t begin, const std::string& typed, const CompletionSources& sources,
                         Offered offered = Offered::files) {
  Completion completion = {.begin = begin, .candidates = {}};
  for (const FileName& file : files_beginning(typed, sources)) {
    if (offered == Offered::folders && !file.is_folder) continue;
    completion.candidates.push_back({.text = file.typed, .ending = {}, .shown = file.name});
  }
  return sorted(std::move(completion));
}

// A name, or the path of a model if what was typed can only be a path.
Completion model_argument(std::size_t begin, const std::string& typed, const CompletionSources& sources) {
  if (typed.starts_with('.') || typed.starts_with('/') || typed.starts_with('~'))
    return file_argument(begin, typed, sources);
  return words_beginning(begin, typed, sources.models(), "");
}

Completion mentioned_file(const Mention& mention, const CompletionSources& sources) {
  Completion completion = {.begin = mention.begin, .candidates = {}};
  const auto files = files_beginning(mention.name, sources);
  // Candidates that are quoted and others would have no common beginning.
  const bool is_quoted = mention.is_quoted || std::ranges::any_of(files, [](const FileName& file) {
                           return file.typed.find(' ') != std::string::npos;
                         });
  for (const FileName& file : files) {
    const std::string ending = file.is_folder ? "" : is_quoted ? "\" " : " ";
    completion.candidates.push_back(
        {.text = (is_quoted ? "@\"" : "@") + file.typed, .ending = ending, .shown = file.name});
  }
  return sorted(std::move(completion));
}

Completion setting(std::size_t begin, std::string_view typed, const CompletionSources& sources) {
  const std::size_t space = typed.find(' ');
  if (space == std::string_view::npos) return words_beginning(begin, typed, sources.settings(), " ");
  const std::string_view name = typed.substr(0, space);
  std::vector<std::string> values = {"default"};
  if (name == "think") values = {"on", "off", "low", "medium", "high", "default"};
  if (name == "reasoning" || name == "stats") values = {"on", "off"};
  return words_beginning(begin + space + 1, typed.substr(space + 1), values, "");
}

std::optional<Completion> argument(std::string_view text, std::size_t begin,
                                   const CompletionSources& sources) {
  const std::string typed(text.substr(begin));
  switch (argument_of(parse_command(text).action)) {
    case Argument::none: return Completion{.begin = begin, .candidates = {}};
    case Argument::file: return file_argument(begin, typed, sources);
    // A file that exists would be replaced.
    case Argument::new_file: return file_argument(begin, typed, sources, Offered::folders);
    case Argument::model: return model_argument(begin, typed, sources);
    case Argument::setting: return setting(begin, typed, sources);
    case Argument::text: break;
  }
  return std::nullopt;
}

Completion command(std::string_view typed) {
  Completion completion;
  for (const CommandWord& word : command_words()) {
    std::string name = "/" + std::string(word.name);
    if (!name.starts_with(typed)) continue;
    const bool takes_more = argument_of(word.action) != Argument::none;
    completion.candidates.push_back({.text = std::move(name), .ending = takes_more ? " " : "", .shown = {}});
  }
  return sorted(std::move(completion));
}

}  // namespace

Completion complete_word(std::string_view typed, const std::vector<std::string>& words) {
  return words_beginning(0, typed, words, "");
}

std::optional<Completion> complete_entry(std::string_view before_cursor, const CompletionSources& sources) {
  if (before_cursor.starts_with('/') && before_cursor.find('\n') == std::string_view::npos) {
    const std::size_t space = before_cursor.find(' ');
    if (space == std::string_view::npos) return command(before_cursor);
    const std::size_t begin = std::min(before_cursor.find_first_not_of(' ', space), before_cursor.size());
    if (const auto completion = argument(before_cursor, begin, sources)) return completion;
  }
  const auto mentions = find_mentions(before_cursor);
  if (mentions.empty() || mentions.back().end != before_cursor.size()) return std::nullopt;
  if (mentions.back().is_quoted && !mentions.back().is_open) return std::nullopt;
  return mentioned_file(mentions.back(), sources);
}

}  // namespace inferno::play
