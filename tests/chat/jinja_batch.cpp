// Renders many templates in one process, for differential tests: one JSON object per line
// ({"template", "variables"}), each answered with {"text", "spans"} or {"error"}.
#include <iostream>
#include <string>

#include "base/error.h"
#include "chat/jinja/template.h"
#include "chat/json.h"

namespace {

using namespace inferno;

Json answer(const std::string& line) {
  const Json request = parse_json(line, "request");
  jinja::RenderOptions options;
  using namespace std::chrono;
  options.clock = [] { return local_days(2025y / August / 5) + 14h + 30min; };
  try {
    const auto chat_template = jinja::Template::parse(request.at("template"), "test");
    const jinja::Rendered rendered = chat_template.render(request.at("variables"), options);
    Json spans = Json::array();
    for (const jinja::Span& span : rendered.user_spans) spans.push_back({span.begin, span.end});
    return {{"text", rendered.text}, {"spans", spans}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(line).dump() << std::endl;
  }
}
