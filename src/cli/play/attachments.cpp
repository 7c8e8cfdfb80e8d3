#include "cli/play/attachments.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "base/utf8.h"

namespace inferno::play {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view blanks = " \t\n";
constexpr std::string_view opening = "([{<'\"`";        // may come before a name in a sentence
constexpr std::string_view closing = ",.;:!?)]}>'\"`";  // may follow one

bool is_blank(char byte) {
  return blanks.find(byte) != std::string_view::npos;
}

// True at the start of a word, or after brackets and quotes that start it.
bool begins_word(std::string_view text, std::size_t at) {
  while (at > 0 && opening.find(text[at - 1]) != std::string_view::npos) --at;
  return at == 0 || is_blank(text[at - 1]);
}

std::string as_text_advice(std::string_view name) {
  return fmt::format("\\@{} sends it as text", name);
}

// A path or a name with an extension, rather than "@someone" or "@app.route('/')".
bool looks_like_file(const Mention& mention) {
  const std::string& name = mention.name;
  return mention.is_quoted || (name.find_first_of("./~") != std::string::npos && name != "." &&
                               name.find_first_of("()<>*|;=") == std::string::npos);
}

// The mention without the punctuation of its sentence, unless that belongs to the name of a file.
Mention without_punctuation(Mention mention, const std::function<fs::path(const std::string&)>& path_of) {
  std::error_code ignored;
  Mention shorter = mention;
  while (!shorter.name.empty() && !fs::exists(path_of(shorter.name), ignored)) {
    if (mention.is_quoted || closing.find(shorter.name.back()) == std::string_view::npos) break;
    shorter.name.pop_back();
    --shorter.end;
  }
  return shorter.name.empty() ? mention : shorter;
}

std::string read_text(const std::string& name, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    fail(ErrorKind::not_found, fmt::format("@{}: no such file", name),
         {.why = {}, .next = as_text_advice(name)});
  if (fs::is_directory(path, ignored))
    fail(ErrorKind::invalid_request, fmt::format("@{}: a folder, not a text file", name),
         {.why = {}, .next = as_text_advice(name)});
  const std::uintmax_t size = fs::file_size(path, ignored);
  if (!ignored && size > max_attachment)
    fail(ErrorKind::unsupported,
         fmt::format("@{}: {} are too much for a message, the limit is {}", name, human_size(size),
                     human_size(max_attachment)),
         {.why = {}, .next = "put a part of the file into a smaller one"});
  const std::string text = read_file(path, max_attachment);
  if (text.find('\0') != std::string::npos || !utf8::is_valid(text))
    fail(ErrorKind::unsupported, fmt::format("@{}: not a text file", name),
         {.why = "it is not UTF-8", .next = as_text_advice(name)});
  return text;
}

// Longer than every run of backticks in the text, so that the text cannot end it.
std::string fence_for(std::string_view text) {
  std::size_t longest = 2;
  for (std::size_t at = text.find('`'); at != std::string_view::npos; at = text.find('`', at)) {
    const std::size_t end = std::min(text.find_first_not_of('`', at), text.size());
    longest = std::max(longest, end - at);
    at = end;
  }
  return std::string(longest + 1, '`');
}

std::string without_backslashes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("\\@") && begins_word(text, at)) continue;
    out += text[at];
  }
  return out;
}

}  // namespace

std::vector<Mention> find_mentions(std::string_view message) {
  std::vector<Mention> found;
  for (std::size_t at = message.find('@'); at != std::string_view::npos; at = message.find('@', at + 1)) {
    if (!begins_word(message, at)) continue;
    Mention mention = {.begin = at, .end = at + 1, .name = {}, .is_quoted = false, .is_open = false};
    std::size_t begin = at + 1;
    mention.is_quoted = message.substr(begin).starts_with('"');
    if (mention.is_quoted) ++begin;
    std::size_t end =
        mention.is_quoted ? message.find_first_of("\"\n", begin) : message.find_first_of(blanks, begin);
    end = std::min(end, message.size());
    mention.is_open = mention.is_quoted && (end == message.size() || message[end] != '"');
    mention.name = message.substr(begin, end - begin);
    mention.end = mention.is_quoted && !mention.is_open ? end + 1 : end;
    found.push_back(mention);
    at = mention.end - 1;
  }
  return found;
}

Attached attach_files(std::string_view message, const std::function<fs::path(const std::string&)>& path_of) {
  Attached attached;
  std::string files;
  std::size_t copied = 0;
  for (const Mention& whole : find_mentions(message)) {
    if (whole.name.empty() || whole.is_open) continue;
    const Mention mention = without_punctuation(whole, path_of);
    std::error_code ignored;
    if (!looks_like_file(mention) && !fs::is_regular_file(path_of(mention.name), ignored)) continue;
    attached.message += without_backslashes(message.substr(copied, mention.begin - copied)) + mention.name;
    copied = mention.end;
    if (std::ranges::find(attached.files, mention.name, &AttachedFile::name) != attached.files.end())
      continue;
    const std::string text = read_text(mention.name, path_of(mention.name));
    const bool has_end = text.empty() || text.ends_with('\n');
    const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + (has_end ? 0 : 1);
    attached.files.push_back({.name = mention.name, .bytes = text.size(), .lines = lines});
    const std::string fence = fence_for(text);
    files += fmt::format("\n\n{}:\n{}\n{}{}{}", mention.name, fence, text, has_end ? "" : "\n", fence);
  }
  attached.message += without_backslashes(message.substr(copied)) + files;
  return attached;
}

}  // namespace inferno::play
