#include "cli/play/conversations.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace inferno::play {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_file = std::uint64_t{64} << 20;
constexpr std::size_t title_bytes = 60;
constexpr std::string_view title_heading = "# Conversation with ", system_heading = "\n**System:** ",
                           question_heading = "\n## You\n\n";

// One line of at most 60 bytes, cut between characters.
std::string title_of(const std::string& question) {
  std::string line = question.substr(0, question.find('\n'));
  if (line.size() <= title_bytes) return line;
  std::size_t end = title_bytes;
  while (end > 0 && utf8::is_continuation(line[end])) --end;
  return line.substr(0, end) + "...";
}

std::string as_json(const Transcript& transcript, const std::string& model) {
  return transcript.saved(model).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string answer_heading(std::string_view model) {
  return fmt::format("\n## {}\n\n", model);
}

// Headings of a document's own level, outside of code, may be a reader's notes; so may anything after code
// that does not end.
bool has_headings(std::string_view text) {
  bool is_code = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code && (line.starts_with("# ") || line.starts_with("## "))) return true;
  }
  return is_code;
}

// Removes `heading` and the text below it, which ends at the heading `next` or with the document. False if
// the text is not there or has headings.
bool take_section(std::string_view& rest, std::string_view heading, std::string_view next) {
  if (!rest.starts_with(heading)) return false;
  rest.remove_prefix(heading.size());
  const std::size_t line_end = rest.find(fmt::format("\n{}", next));
  const std::string_view text = rest.substr(0, line_end == std::string_view::npos ? line_end : line_end + 1);
  rest.remove_prefix(text.size());
  return text.ends_with('\n') && !has_headings(text);
}

// Whether it is what as_markdown() makes of complete turns. A conversation with headings in a message is not
// told from one with notes.
bool is_markdown_conversation(std::string_view text) {
  if (!text.starts_with(title_heading)) return false;
  const std::string_view title = text.substr(0, text.find('\n'));
  if (title.size() == text.size()) return false;
  const std::string answer = answer_heading(title.substr(title_heading.size()));
  std::string_view rest = text.substr(title.size() + 1);
  if (rest.starts_with(system_heading) && !take_section(rest, system_heading, question_heading)) return false;
  while (!rest.empty()) {
    if (!take_section(rest, question_heading, answer)) return false;
    if (!take_section(rest, answer, question_heading)) return false;
  }
  return true;
}

// Whether it is what as_json() writes, and nothing more.
bool is_json_conversation(const std::string& text, const fs::path& file) {
  const Json saved = parse_json(text, file.string());
  Transcript transcript;
  transcript.open(saved);
  return saved.contains("model") && saved.at("model").is_string() &&
         transcript.saved(saved.at("model").get<std::string>()) == saved;
}

// The name of a file begins with the time: 20261119-040512.
std::string begun(const std::string& name) {
  std::tm time{};
  if (::strptime(name.c_str(), "%Y%m%d-%H%M%S", &time) == nullptr) return "";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(::timegm(&time)));
}

}  // namespace

bool Conversations::keep(const Transcript& transcript, const std::string& model) {
  if (folder_.empty() || transcript.turns().empty()) return true;
  if (file_.empty() && new_ == New::not_kept) return true;
  try {
    if (file_.empty()) {
      fs::create_directories(folder_);
      fs::permissions(folder_, fs::perms::owner_all);
      // Names sort by time; the process tells conversations of one microsecond apart.
      const auto now =
          std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
      const auto micros = now.time_since_epoch().count() % 1'000'000;
      file_ = folder_ / fmt::format("{:%Y%m%d-%H%M%S}-{:06}-{}.json",
                                    fmt::gmtime(std::chrono::system_clock::to_time_t(now)), micros, getpid());
      remove_oldest();
    }
    replace_file(file_, as_json(transcript, model), Readers::owner);
    return true;
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

std::vector<fs::path> Conversations::files() const {
  std::vector<fs::path> found;
  std::error_code problem;
  if (folder_.empty()) return found;
  for (const auto& entry : fs::directory_iterator(folder_, problem)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file(problem)) found.push_back(entry.path());
  }
  std::ranges::sort(found, std::greater());
  return found;
}

void Conversations::remove_oldest() const {
  const std::vector<fs::path> all = files();
  std::error_code ignored;
  for (std::size_t at = max_kept - 1; at < all.size(); ++at) fs::remove(all[at], ignored);
}

std::vector<KeptConversation> Conversations::newest(std::size_t count) const {
  std::vector<KeptConversation> kept;
  for (const fs::path& file : files()) {
    if (kept.size() == count) break;
    try {
      const Json saved = parse_json(read_file(file, max_file), file.string());
      Transcript transcript;
      transcript.open(saved);
      if (transcript.turns().empty()) continue;
      const bool has_model = saved.contains("model") && saved.at("model").is_string();
      kept.push_back({.file = file,
                      .title = title_of(transcript.turns().front().question),
                      .model = has_model ? saved.at("model").get<std::string>() : "",
                      .begun = begun(file.filename().string()),
                      .turns = transcript.turns().size()});
    } catch (const Error&) {
      continue;
    }
  }
  return kept;
}

std::string as_markdown(const Transcript& transcript, const std::string& model) {
  std::string text = fmt::format("{}{}\n", title_heading, model);
  if (!transcript.system().empty()) text += fmt::format("{}{}\n", system_heading, transcript.system());
  for (const Turn& turn : transcript.turns()) {
    text += fmt::format("{}{}\n", question_heading, turn.question);
    if (!turn.finish_reason.empty()) text += fmt::format("{}{}\n", answer_heading(model), turn.answer);
  }
  return text;
}

void save_conversation(const Transcript& transcript, const std::string& model, const fs::path& file) {
  replace_file(file, file.extension() == ".md" ? as_markdown(transcript, model) : as_json(transcript, model));
}

bool may_replace(const fs::path& file) try {
  std::error_code problem;
  if (!fs::is_regular_file(file, problem) || fs::file_size(file, problem) == 0) return true;
  const std::string text = read_file(file, max_file);
  return is_markdown_conversation(text) || is_json_conversation(text, file);
} catch (const Error&) {
  return false;
}

std::optional<SavedFiles::Written> SavedFiles::now(const fs::path& file) {
  std::error_code problem;
  if (!fs::is_regular_file(file, problem)) return std::nullopt;
  const std::uintmax_t size = fs::file_size(file, problem);
  if (problem) return std::nullopt;
  const fs::file_time_type time = fs::last_write_time(file, problem);
  return problem ? std::nullopt : std::optional(Written{.size = size, .time = time});
}

std::string SavedFiles::objection(const fs::path& file) const {
  std::error_code ignored;
  const auto saved = files_.find(fs::weakly_canonical(file, ignored));
  const std::optional<Written> found = now(file);
  if (saved == files_.end() || !found)
    return may_replace(file) ? "" : "the file exists and is not a conversation";
  return *found == saved->second ? "" : "the file was changed since it was saved";
}

void SavedFiles::remember(const fs::path& file) {
  std::error_code ignored;
  if (const auto found = now(file)) files_.insert_or_assign(fs::weakly_canonical(file, ignored), *found);
}

}  // namespace inferno::play
