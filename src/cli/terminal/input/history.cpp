#include "cli/terminal/input/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "cli/terminal/input/key.h"

namespace inferno::terminal {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_bytes = 4u << 20;  // only the end of a longer file is read

std::string escaped(std::string_view entry) {
  std::string out;
  for (const char letter : entry) {
    if (letter == '\n') {
      out += "\\n";
    } else if (letter == '\\') {
      out += "\\\\";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string unescaped(std::string_view line) {
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      out += line[at];
    } else {
      ++at;
      out += line[at] == 'n' ? '\n' : line[at];
    }
  }
  // Other programs may have written to the file.
  return clean_input(out);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n") == std::string_view::npos;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool write_file(const fs::path& path, std::string_view bytes, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  const bool written = write_all(file, bytes);
  return ::close(file) == 0 && written;
}

}  // namespace

History::History(fs::path file) : file_(std::move(file)) {
  std::ifstream in(*file_, std::ios::binary);
  if (!in) return;
  std::error_code status;
  const std::uintmax_t size = fs::file_size(*file_, status);
  std::string line;
  if (!status && size > max_bytes) {
    in.seekg(static_cast<std::streamoff>(size - max_bytes));
    std::getline(in, line);  // probably half an entry
  }
  while (std::getline(in, line)) {
    if (!is_blank(line)) entries_.push_back(unescaped(line));
  }
  if (entries_.size() <= max_entries) return;
  const bool is_much_too_long = entries_.size() > 2 * max_entries;
  entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(max_entries));
  if (is_much_too_long) shorten_file();
}

bool History::add(const std::string& entry) {
  if (is_blank(entry) || (!entries_.empty() && entries_.back() == entry)) return true;
  entries_.push_back(entry);
  if (entries_.size() > max_entries) entries_.erase(entries_.begin());
  return append(entry);
}

bool History::append(const std::string& entry) const {
  if (!file_) return true;
  std::error_code status;
  if (fs::create_directories(file_->parent_path(), status)) {
    fs::permissions(file_->parent_path(), fs::perms::owner_all, status);
  }
  return write_file(*file_, escaped(entry) + "\n", O_APPEND);
}

// Writes a temporary file and renames it, so that a session that ends in between loses nothing.
void History::shorten_file() const {
  std::string text;
  for (const std::string& entry : entries_) text += escaped(entry) + "\n";
  const fs::path temporary = fmt::format("{}.{}", file_->string(), ::getpid());
  std::error_code status;
  if (write_file(temporary, text, O_TRUNC)) fs::rename(temporary, *file_, status);
  fs::remove(temporary, status);
}

}  // namespace inferno::terminal
