// JSON from a hub: bounded in depth, and read field by field with a value for whatever is missing or of
// another type than it should be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace inferno::hub {

// nullopt for text that is no JSON, and for what is nested more than 64 deep.
std::optional<nlohmann::json> parse_json(const std::string& text);

const nlohmann::json& field(const nlohmann::json& object, const char* name);  // null when it is not there
std::string text_field(const nlohmann::json& object, const char* name);
bool flag_field(const nlohmann::json& object, const char* name);
// nullopt when absent, negative or no whole number.
std::optional<std::uint64_t> count_field(const nlohmann::json& object, const char* name);
std::vector<std::string> text_list(const nlohmann::json& array);

}  // namespace inferno::hub
