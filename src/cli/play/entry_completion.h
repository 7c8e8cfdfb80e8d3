// What Tab completes in `play`: commands and their arguments, and names of files after an at sign.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/input/line_editor.h"

namespace inferno::play {

// Asked only when something of theirs is completed.
struct CompletionSources {
  std::function<std::vector<std::string>()> models, settings;
  std::function<std::filesystem::path(const std::string& typed)> path_of;
};

// One of these words.
terminal::Completion complete_word(std::string_view typed, const std::vector<std::string>& words);

// nullopt where nothing can be completed: in the text of a message.
std::optional<terminal::Completion> complete_entry(std::string_view before_cursor,
                                                   const CompletionSources& sources);

}  // namespace inferno::play
