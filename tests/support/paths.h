// The data of tests: the files in the repository, and the larger reference folder next to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace inferno::testing {

// The repository; $INFERNO_SOURCE if a program runs on another machine than it was built on.
std::filesystem::path source_folder();
std::filesystem::path data_folder();  // tests/data

// $INFERNO_SHARED/reference, or ../shared/reference beside the project; nullopt if there is none.
std::optional<std::filesystem::path> shared_reference();

// The names in a folder, sorted; empty if it does not exist.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace inferno::testing
