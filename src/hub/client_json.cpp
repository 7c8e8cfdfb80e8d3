#include "hub/client_json.h"

namespace inferno::hub {
namespace {

using Json = nlohmann::json;
constexpr int deepest = 64;

}  // namespace

std::optional<Json> parse_json(const std::string& text) {
  bool too_deep = false;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  Json parsed = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (too_deep || parsed.is_discarded()) return std::nullopt;
  return parsed;
}

const Json& field(const Json& object, const char* name) {
  static const Json absent;
  if (!object.is_object()) return absent;
  const auto found = object.find(name);
  return found == object.end() ? absent : *found;
}

std::string text_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_boolean() && value.get<bool>();
}

std::optional<std::uint64_t> count_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  return std::nullopt;
}

std::vector<std::string> text_list(const Json& array) {
  std::vector<std::string> texts;
  if (!array.is_array()) return texts;
  for (const Json& one : array) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

}  // namespace inferno::hub
