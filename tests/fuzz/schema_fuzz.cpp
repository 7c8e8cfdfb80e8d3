// Any text as a JSON schema: it compiles or is refused in bounded time, every mask is what trying every token
// gives, and a complete text is JSON that a plain validator does not find wrong.
#include "fuzz/constraint_walk.h"
#include "fuzz/validator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  const auto [schema, choices] = fuzz::split_input(data, size);
  const auto walk =
      fuzz::compile_and_walk([&] { return grammar::compile_schema(schema, fuzz::quick()); }, choices);
  if (!walk || !walk->is_complete) return 0;
  const grammar::JsonNode value = grammar::parse_json_text(walk->text);
  fuzz::must_hold(fuzz::validate(grammar::parse_json_text(schema), value) != fuzz::Verdict::invalid);
  return 0;
}
