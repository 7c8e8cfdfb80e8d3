// Names from a hub are hostile. This is the only way one of them becomes part of a path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

// Why `name` may not be a path below a folder of ours; empty when it may. Refused are: nothing at all,
// absolute names, drives, "." and "..", empty parts, backslashes, control characters, marks that change the
// direction of writing, bytes that are not UTF-8, parts of more than 255 bytes and names of more than 1,024.
std::string unsafe_because(std::string_view name);

// `name` as a relative path that stays below whatever it is joined to. Error{corrupt} with the reason.
std::filesystem::path safe_path(std::string_view name);

// The folders of `relative` below `root`, made where they are missing, none of them through a symbolic link:
// somebody may have planted one that leads elsewhere. `root` itself may be reached through links. Error{io}.
void make_folders_beneath(const std::filesystem::path& root, const std::filesystem::path& relative);

// Whether every folder on the way from `root` to `relative` is a folder itself, not a link to one; parts that
// do not exist end the question.
bool stays_beneath(const std::filesystem::path& root, const std::filesystem::path& relative);

bool is_hex(std::string_view text, std::size_t length);  // lower case, as hubs write it

}  // namespace inferno::hub
