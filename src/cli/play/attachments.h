// Files that a message names with an at sign: their text becomes part of the message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::play {

inline constexpr std::size_t max_attachment = 1'000'000;  // bytes of one file

// "@notes.txt" or "@\"my notes.txt\"" in a message, also in brackets and quotes. An at sign in a word, as in
// an address, is text.
struct Mention {
  std::size_t begin = 0, end = 0;  // of the whole mention
  std::string name;
  bool is_quoted = false;
  bool is_open = false;  // a quotation without its end
};

// In their order. "\@" is not one.
std::vector<Mention> find_mentions(std::string_view message);

struct AttachedFile {
  std::string name;
  std::size_t bytes = 0, lines = 0;
};

struct Attached {
  std::string message;
  std::vector<AttachedFile> files;
};

// Replaces each mention by the name of its file and puts the files below the message, each once and between
// fences; "\@" becomes "@". A name that is neither a file nor looks like one stays as it is, as in
// "@dataclass". `path_of` finds the path of a name that was typed. Error{not_found}, Error{unsupported} or
// Error{io} if a file is missing, not text, too large or cannot be read.
Attached attach_files(std::string_view message,
                      const std::function<std::filesystem::path(const std::string&)>& path_of);

}  // namespace inferno::play
