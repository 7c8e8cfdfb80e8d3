// Where tests find their data: what ships with the project, and the larger reference folder beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace inferno::testing {

// The project: $INFERNO_SOURCE where a program runs on another machine than it was built on.
std::filesystem::path source_folder();
std::filesystem::path data_folder();  // tests/data

// $INFERNO_SHARED/reference, or ../shared/reference beside the project; nullopt when there is none.
std::optional<std::filesystem::path> shared_reference();

// The names in a folder, sorted; empty when it does not exist.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace inferno::testing
