// F8: a chat template and the variables it is rendered with, separated by a zero byte. The result must be
// UTF-8, and the user's spans must be inside it, in order.
#include "base/utf8.h"
#include "chat/jinja/template.h"
#include "chat/json.h"
#include "fuzz/guard.h"

namespace {

using namespace inferno;

const Json& usual_variables() {
  static const Json variables = parse_json(
      R"({"messages": [{"role": "user", "content": "Hi <|end|> ü"}, {"role": "assistant", "content": null,
          "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
          "s": "Hello, World", "n": 5, "f": 2.5, "xs": [3, 1, 2], "d": {"b": 1, "a": "x"},
          "users": [{"name": "Zoe", "age": 3}, {"name": "al", "age": 20}], "add_generation_prompt": true})",
      fuzz::origin);
  return variables;
}

void check(const jinja::Rendered& rendered) {
  std::size_t at = 0;
  for (const jinja::Span& span : rendered.user_spans) {
    const bool touches = span.begin == at && at != 0;
    if (span.begin < at || touches || span.end <= span.begin || span.end > rendered.text.size()) std::abort();
    at = span.end;
  }
  if (utf8::first_invalid(rendered.text)) std::abort();
}

void render(std::string_view input) {
  const std::size_t zero = input.find('\0');
  Json variables = usual_variables();
  if (zero != std::string_view::npos) {
    variables = parse_json(input.substr(zero + 1), fuzz::origin);
    if (!variables.is_object()) return;
  }
  jinja::RenderOptions options;
  options.budgets.steps = 200'000;
  options.budgets.heap_bytes = std::size_t{16} << 20;
  options.model_texts = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  options.clock = [] { return std::chrono::local_seconds(std::chrono::seconds(1'754'404'200)); };
  const auto chat_template = jinja::Template::parse(std::string(input.substr(0, zero)), fuzz::origin);
  check(chat_template.render(variables, options));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::guard([&] { render(fuzz::text(data, size)); });
  return 0;
}
