// Constraints that are hard on masks, chosen by the first byte, and any walk through them: keys that may not
// be repeated, counters near their bounds, patterns with lengths, characters cut by tokens.
#include <array>

#include "fuzz/constraint_walk.h"
#include "fuzz/validator.h"

namespace {

using namespace inferno;

constexpr std::array<std::string_view, 16> schemas = {
    R"({"type":"object","additionalProperties":{"type":"integer"},"maxProperties":3})",
    R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]})",
    R"({"type":"object","patternProperties":{"^[ab]$":{"type":"boolean"}},"additionalProperties":false,"minProperties":2})",
    R"({"type":"object","propertyNames":{"enum":["a","b","ab"]},"minProperties":3})",
    R"({"type":"string","minLength":3,"maxLength":5})",
    R"({"type":"string","maxLength":130})",
    R"({"type":"string","pattern":"^(\\S+\\s+){0,3}\\S+$","maxLength":9})",
    R"({"type":"string","pattern":"^.*b$"})",
    R"({"type":"array","items":{"type":"string","pattern":"^[a-f]{2,4}$"},"minItems":2,"maxItems":4})",
    R"({"type":"array","items":{"anyOf":[{"const":"ab"},{"type":"number","minimum":-1.5,"maximum":12},{"type":"null"}]}})",
    R"({"$defs":{"t":{"type":"object","properties":{"a":{"$ref":"#/$defs/t"},"b":{"type":"string"}}}},"$ref":"#/$defs/t"})",
    R"({"type":"object","patternProperties":{"^a":{"type":"string"}},"properties":{"ab":{"maxLength":2}}})",
    R"({"type":"string","format":"date"})",
    R"({"type":"integer","multipleOf":12,"minimum":-120})",
    R"({"type":"object","patternProperties":{"^.$":{"type":"integer"},"^[ab]{2}$":{"type":"null"}}})",
    R"({"type":"object","patternProperties":{"^.$":{"type":"integer"},"^[ab]{2}$":{"type":"null"}},"additionalProperties":false})"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view schema = schemas[data[0] % schemas.size()];
  const auto walk =
      fuzz::compile_and_walk([&] { return grammar::compile_schema(schema); }, fuzz::text(data + 1, size - 1));
  fuzz::must_hold(walk.has_value());
  if (!walk->is_complete) return 0;
  const grammar::JsonNode value = grammar::parse_json_text(walk->text);
  fuzz::must_hold(fuzz::validate(grammar::parse_json_text(schema), value) != fuzz::Verdict::invalid);
  return 0;
}
