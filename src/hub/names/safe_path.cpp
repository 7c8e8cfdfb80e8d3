#include "hub/names/safe_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/files.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_name_bytes = 1024, max_part_bytes = 255;

std::string bad_character(std::string_view name) {
  for (std::size_t at = 0; at < name.size();) {
    const auto [code, length] = utf8::decode(name, at);
    if (length == 0) return "it is not UTF-8";
    if (utf8::is_control(code)) return "it contains a control character";
    if (utf8::changes_direction(code)) return "it contains a bidirectional control character";
    if (code == U'\\') return "it contains a backslash";
    at += static_cast<std::size_t>(length);
  }
  return "";
}

[[noreturn]] void fail_at(const fs::path& path, int problem) {
  const bool is_link = problem == ELOOP || problem == ENOTDIR;
  fail(ErrorKind::io, fmt::format("{}: {}", path.string(), std::strerror(problem)),
       {.why = is_link ? "a folder of the cache is a link or a file, and a link could lead anywhere" : "",
        .next = is_link ? "remove it and run the command again" : ""});
}

}  // namespace

std::string unsafe_reason(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > max_name_bytes) return fmt::format("it is {} bytes long", name.size());
  if (name.front() == '/') return "it is an absolute path";
  if (name.size() > 1 && name[1] == ':' && std::isalpha(static_cast<unsigned char>(name[0])) != 0) {
    return "it starts with a drive letter";
  }
  if (std::string bad = bad_character(name); !bad.empty()) return bad;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return "it has an empty path component";
    if (part == "." || part == "..") return fmt::format("it has a path component \"{}\"", part);
    if (part.size() > max_part_bytes) return fmt::format("it has a path component of {} bytes", part.size());
    begin = end + 1;
  }
  return "";
}

fs::path safe_path(std::string_view name) {
  if (const std::string reason = unsafe_reason(name); !reason.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: not a valid file name", quote(name)),
         {.why = reason + ", so it could lead out of the cache", .next = {}});
  }
  return fs::path(name);
}

void make_folders_beneath(const fs::path& root, const fs::path& relative) {
  std::error_code problem;
  fs::create_directories(root, problem);
  Descriptor at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.is_open()) fail_at(root, errno);
  fs::path done = root;
  for (const fs::path& part : safe_path(relative.generic_string())) {
    done /= part;
    if (::mkdirat(at.number(), part.c_str(), 0777) != 0 && errno != EEXIST) fail_at(done, errno);
    Descriptor next(::openat(at.number(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.is_open()) fail_at(done, errno);
    at = std::move(next);
  }
}

bool stays_beneath(const fs::path& root, const fs::path& relative) {
  fs::path at = root;
  for (const fs::path& part : relative.parent_path()) {
    if (part == "." || part == ".." || part.is_absolute()) return false;
    at /= part;
    std::error_code problem;
    const fs::file_status status = fs::symlink_status(at, problem);
    if (status.type() == fs::file_type::not_found) return true;
    if (status.type() != fs::file_type::directory) return false;
  }
  return true;
}

bool is_hex(std::string_view text, std::size_t length) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == length && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_commit(std::string_view text) {
  return is_hex(text, 40);
}

bool is_etag(std::string_view text) {
  return is_hex(text, 40) || is_hex(text, 64);
}

}  // namespace inferno::hub
