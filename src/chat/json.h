// JSON as templates see it: the order of keys is kept, because Python's json keeps it and templates print it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace inferno {

using Json = nlohmann::ordered_json;

// `name` is the file or field, for messages. Error{corrupt} naming the byte for what is not JSON, for
// nesting deeper than 256, and for integers beyond 64 bits, which would silently lose digits. Of a
// repeated key the last value counts, in linear time.
Json parse_json(std::string_view text, std::string_view name);

}  // namespace inferno
