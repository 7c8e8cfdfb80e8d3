// The user's own editor, for a message that is longer than a line editor is good for.
#pragma once

#include <filesystem>
#include <string>

namespace inferno::play {

// Runs `command`, as a shell understands it, with a file that holds `text`, and returns what the file then
// holds, without line breaks at its end. The file is in a folder of its own below `temporary` that only its
// owner can read, and is gone afterwards, together with what the editor left beside it. Error{io} if the
// editor cannot be started or fails.
std::string edit_text(const std::string& command, const std::string& text,
                      const std::filesystem::path& temporary);

}  // namespace inferno::play
