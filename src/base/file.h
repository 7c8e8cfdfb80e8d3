// Small files, and the names of files to read and to write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno {

// Pipes are for files that a user names on the command line, such as a shell's <(command).
enum class Pipes { refuse, accept };

// A whole file. Errors are those of open_file(), and Error{unsupported} if it has more than `max_bytes`.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes,
                      Pipes pipes = Pipes::refuse);

// Who may read a new file.
enum class Readers { by_umask, owner };

// Replaces the file's content. Error{io} with the reason.
void write_file(const std::filesystem::path& path, std::string_view text,
                Readers readers = Readers::by_umask);

// The same, but under a temporary name in the same folder that becomes the file's when it is complete: after
// a failure the file is as it was. A file that is replaced keeps its permissions, and a symbolic link stays
// one. Devices and pipes are written to.
void replace_file(const std::filesystem::path& path, std::string_view text,
                  Readers readers = Readers::by_umask);

// The first `max_bytes` of a file, also of one without a size (/proc); nullopt if it cannot be read.
std::optional<std::string> read_start(const std::filesystem::path& path, std::size_t max_bytes);

// Where a file that is written under a temporary name may be moved: `path`, with a symbolic link followed, so
// that the link stays a link. Error{invalid_request} if `path` is empty or exists and is not a regular file:
// moving a file onto a device would replace the device.
std::filesystem::path output_path(const std::filesystem::path& path);

// Whether `name` stays inside the directory it is looked up in: no separator, no "..", no control character.
bool is_plain_file_name(std::string_view name);

}  // namespace inferno
