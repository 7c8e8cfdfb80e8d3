#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "base/byte_source.h"
#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_size(const fs::path& path, std::uint64_t max_bytes) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: larger than the limit of {} bytes", path.string(), max_bytes));
}

std::string read_pipe(const fs::path& path, std::uint64_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::io, fmt::format("{}: cannot open", path.string()));
  std::string text;
  char piece[65536];
  while (file.read(piece, sizeof(piece)) || file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_bytes) refuse_size(path, max_bytes);
  }
  return text;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Writes and closes the file. False with errno.
bool finish_file(int file, std::string_view text) {
  if (write_all(file, text)) return ::close(file) == 0;
  const int problem = errno;
  ::close(file);
  errno = problem;
  return false;
}

[[noreturn]] void refuse_writing(const fs::path& path) {
  fail(ErrorKind::io, fmt::format("{}: cannot write the file: {}", path.string(), std::strerror(errno)),
       {.why = {}, .next = "choose another file, or check the folder, its permissions and the free space"});
}

mode_t mode_of_new(Readers readers) {
  return readers == Readers::owner ? S_IRUSR | S_IWUSR : 0666;
}

// A new file beside `target`, whose name is put into `name`. -1 with errno.
int open_partial(const fs::path& target, mode_t mode, fs::path& name) {
  constexpr int attempts = 100;  // a killed process may have left a file
  for (int attempt = 0;; ++attempt) {
    name = target.parent_path() / fmt::format(".inferno-{}-{}.partial", ::getpid(), attempt);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST || attempt == attempts) return file;
  }
}

// A file that is renamed to this name would not get where its content should: into a device, or the file that
// /dev/stdout stands for.
bool must_be_written_in_place(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return false;
  if (!fs::is_regular_file(path, ignored)) return true;  // also a link to nothing
  const fs::path folder = fs::canonical(path.parent_path().empty() ? "." : path.parent_path(), ignored);
  return folder == "/dev" || folder.string().starts_with("/proc/");
}

bool is_pipe_or_device(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes, Pipes pipes) {
  if (pipes == Pipes::accept && is_pipe_or_device(path)) return read_pipe(path, max_bytes);
  const auto file = open_file(path);
  if (file->size() > max_bytes) refuse_size(path, max_bytes);
  std::string text(file->size(), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_file(const fs::path& path, std::string_view text, Readers readers) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_of_new(readers));
  if (file < 0 || !finish_file(file, text)) refuse_writing(path);
}

void replace_file(const fs::path& path, std::string_view text, Readers readers) {
  if (path.empty() || must_be_written_in_place(path)) return write_file(path, text, readers);
  const fs::path target = output_path(path);
  struct stat before{};
  const bool exists = ::stat(target.c_str(), &before) == 0;
  // Renaming asks for no permission to write to the file that is replaced.
  if (exists && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) refuse_writing(path);
  fs::path partial;
  const int file = open_partial(target, mode_of_new(exists ? Readers::owner : readers), partial);
  if (file < 0) refuse_writing(path);
  if (!finish_file(file, text) || (exists && ::chmod(partial.c_str(), before.st_mode & 0777) != 0) ||
      ::rename(partial.c_str(), target.c_str()) != 0) {
    const int problem = errno;
    ::unlink(partial.c_str());
    errno = problem;
    refuse_writing(path);
  }
}

std::optional<std::string> read_start(const fs::path& path, std::size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(max_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

fs::path output_path(const fs::path& path) {
  if (path.empty()) fail(ErrorKind::invalid_request, "no name given for the output file");
  std::error_code problem;
  fs::path target = path;
  if (fs::is_symlink(path, problem)) {
    target = fs::weakly_canonical(path, problem);
    if (problem)
      fail(ErrorKind::io, fmt::format("{}: cannot follow the link: {}", path.string(), problem.message()));
  }
  const fs::file_status status = fs::status(target, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: exists and is not a regular file", path.string()),
         {.why = "a finished file is moved into place, which would replace it",
          .next = "choose another file name"});
  }
  return target;
}

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == ".." || !utf8::is_valid(name)) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '/' || c == '\\' || byte < 0x20 || byte == 0x7F;
  });
}

}  // namespace inferno
