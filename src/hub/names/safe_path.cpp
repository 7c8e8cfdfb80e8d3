#include "hub/names/safe_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 1024, longest_part = 255, longest_shown = 120;
constexpr std::uint32_t not_utf8 = 0xffffffff;

// The character that begins at text[at], and `at` moved behind it.
std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
  if (more == 0 || first >= 0xf5 || text.size() - at < static_cast<std::size_t>(more)) return not_utf8;
  std::uint32_t character = first & (0x3fU >> more);
  for (int i = 0; i < more; ++i) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte & 0xc0) != 0x80) return not_utf8;
    character = character << 6 | (byte & 0x3fU);
    ++at;
  }
  constexpr std::array<std::uint32_t, 4> smallest = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  if (character < smallest[static_cast<std::size_t>(more)] || surrogate || character > 0x10ffff)
    return not_utf8;
  return character;
}

bool is_control(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x2028 ||
         character == 0x2029;
}

bool turns_writing(std::uint32_t character) {
  return character == 0x61c || character == 0x200e || character == 0x200f ||
         (character >= 0x202a && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
}

std::string bad_character(std::string_view name) {
  for (std::size_t at = 0; at < name.size();) {
    const std::uint32_t character = next_character(name, at);
    if (character == not_utf8) return "it is not UTF-8";
    if (is_control(character)) return "it holds a control character";
    if (turns_writing(character)) return "it holds a mark that changes the direction of writing";
    if (character == '\\') return "it holds a backslash";
  }
  return "";
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void replace(int number) {
    ::close(number_);
    number_ = number;
  }
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail_at(const fs::path& path, int problem) {
  const bool is_link = problem == ELOOP || problem == ENOTDIR;
  fail(ErrorKind::io, fmt::format("{}: {}", path.string(), std::strerror(problem)),
       {.why = is_link ? "a folder of the cache is not a folder of its own: a link could lead anywhere" : "",
        .next = is_link ? "remove it and run the command again" : ""});
}

}  // namespace

std::string unsafe_because(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > longest_name) return fmt::format("it has {} bytes", name.size());
  if (name.front() == '/') return "it is an absolute path";
  if (name.size() > 1 && name[1] == ':' && std::isalpha(static_cast<unsigned char>(name[0])) != 0) {
    return "it names a drive";
  }
  if (std::string bad = bad_character(name); !bad.empty()) return bad;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return "a part of it is empty";
    if (part == "." || part == "..") return fmt::format("a part of it is \"{}\"", part);
    if (part.size() > longest_part) return fmt::format("a part of it has {} bytes", part.size());
    begin = end + 1;
  }
  return "";
}

fs::path safe_path(std::string_view name) {
  if (const std::string reason = unsafe_because(name); !reason.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: not a name for a file of a model", shown(name)),
         {.why = reason + ", so it could lead out of the cache", .next = {}});
  }
  return fs::path(name);
}

void make_folders_beneath(const fs::path& root, const fs::path& relative) {
  std::error_code problem;
  fs::create_directories(root, problem);
  Descriptor at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.number() < 0) fail_at(root, errno);
  fs::path done = root;
  for (const fs::path& part : safe_path(relative.generic_string())) {
    done /= part;
    if (::mkdirat(at.number(), part.c_str(), 0777) != 0 && errno != EEXIST) fail_at(done, errno);
    const int next = ::openat(at.number(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) fail_at(done, errno);
    at.replace(next);
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

std::string shown(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at < name.size() && out.size() < longest_shown;) {
    const std::size_t begin = at;
    const std::uint32_t character = next_character(name, at);
    if (character == not_utf8 || is_control(character) || turns_writing(character)) {
      at = character == not_utf8 ? begin + 1 : at;
      for (const char byte : name.substr(begin, at - begin)) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    } else {
      out += name.substr(begin, at - begin);
    }
  }
  if (out.size() >= longest_shown) out += "...";
  return "\"" + out + "\"";
}

}  // namespace inferno::hub
