// Names from a hub are hostile. Only these functions turn one into part of a path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

// Why `name` must not be used as a relative path; empty if it may. Refused are: the empty name, absolute
// paths, drives, "." and "..", empty parts, backslashes, control characters, marks that change the direction
// of writing, bytes that are not UTF-8, parts longer than 255 bytes and names longer than 1,024.
std::string unsafe_reason(std::string_view name);

// `name` as a relative path that stays below any folder it is appended to. Error{corrupt} with the reason.
std::filesystem::path safe_path(std::string_view name);

// Creates the folders of `relative` below `root` without following symbolic links, because an attacker may
// have planted one. `root` itself may be reached through links. Error{io}.
void make_folders_beneath(const std::filesystem::path& root, const std::filesystem::path& relative);

// Whether every existing folder on the way from `root` to `relative` is a real folder, not a link.
bool stays_beneath(const std::filesystem::path& root, const std::filesystem::path& relative);

bool is_hex(std::string_view text, std::size_t length);  // in lower case, as hubs write it
bool is_commit(std::string_view text);                   // 40 hex digits
bool is_etag(std::string_view text);                     // 40 or 64 hex digits

}  // namespace inferno::hub
