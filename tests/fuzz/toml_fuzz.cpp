// F18: configuration files. An error names a place in the text, and what was read can be read again.
#include "cli/config/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fuzz/guard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  const std::string_view text = fuzz::text(data, size);
  const auto lines = static_cast<int>(std::ranges::count(text, '\n')) + 1;
  try {
    const toml::Document document = toml::parse(text, fuzz::origin);
    std::set<std::vector<std::string>> seen;
    for (const toml::Entry& entry : document.entries) {
      if (entry.path.empty() || entry.path.size() > 8 || !seen.insert(entry.path).second) std::abort();
      if (entry.key_at.line > lines || entry.value_at.line < entry.key_at.line) std::abort();
      if (!entry.is_array && entry.values.size() != 1) std::abort();
      for (const toml::Scalar& value : entry.values) {
        if (value.kind == toml::Kind::string) continue;
        const auto again = toml::parse("key = " + value.text, fuzz::origin);
        if (again.entries.at(0).values.at(0) != value) std::abort();
      }
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_request) std::abort();
    if (!std::string_view(error.what()).starts_with(fmt::format("{}:", fuzz::origin))) std::abort();
  }
  return 0;
}
