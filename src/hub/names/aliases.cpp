#include "hub/names/aliases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno::hub {

extern const std::string_view alias_table;  // generated

namespace {

std::uint64_t bytes_of(double gigabytes) {
  return static_cast<std::uint64_t>(std::llround(gigabytes * 1e9));
}

Alias read_line(const std::string& line, const std::vector<Alias>& known) {
  std::istringstream words(line);
  Alias alias;
  std::string second, third, access;
  double original = 0, quantized = 0;
  words >> alias.name >> second;
  if (second == "=") {
    words >> third;
    const auto found = std::ranges::find(known, third, &Alias::name);
    if (found != known.end()) {
      Alias other = *found;
      other.name = alias.name;
      return other;
    }
  } else if (words >> original >> access >> third >> quantized && (access == "open" || access == "gated")) {
    alias.original = second;
    alias.quantized = third == "-" ? "" : third;
    alias.original_bytes = bytes_of(original);
    alias.quantized_bytes = bytes_of(quantized);
    alias.is_gated = access == "gated";
    for (std::string key; words >> key;) {
      double gigabytes = 0;
      if (key == "text") {
        alias.is_chat = false;
      } else if (key == "reads" && words >> gigabytes) {
        alias.token_bytes = bytes_of(gigabytes);
      } else {
        fail(ErrorKind::internal, fmt::format("aliases.txt: not an alias: {}", quote(line)));
      }
    }
    return alias;
  }
  fail(ErrorKind::internal, fmt::format("aliases.txt: not an alias: {}", quote(line)));
}

constexpr std::string_view unsupported = "unsupported ";

std::string_view without_latest(std::string_view text) {
  constexpr std::string_view latest = ":latest";
  return text.ends_with(latest) ? text.substr(0, text.size() - latest.size()) : text;
}

}  // namespace

std::vector<Alias> read_aliases(std::string_view table) {
  std::vector<Alias> all;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#' && !line.starts_with(unsupported))
      all.push_back(read_line(line, all));
  }
  return all;
}

static std::vector<Alias>& table() {
  static std::vector<Alias> all = read_aliases(alias_table);
  return all;
}

std::span<const Alias> aliases() {
  return table();
}

void add_aliases(std::vector<Alias> own) {
  for (Alias& alias : own) {
    std::erase_if(table(), [&](const Alias& other) { return other.name == alias.name; });
    table().push_back(std::move(alias));
  }
}

const Alias* find_alias(std::string_view text) {
  constexpr std::size_t longest = 64;
  if (text.size() > longest) return nullptr;
  const std::string small = lower_case(without_latest(text));
  const auto found = std::ranges::find(aliases(), small, &Alias::name);
  return found == aliases().end() ? nullptr : &*found;
}

std::vector<const Alias*> aliases_like(std::string_view text) {
  const std::string small = lower_case(text.substr(0, text.find(':')));
  std::vector<const Alias*> found;
  for (const Alias& alias : aliases()) {
    const bool has_tag = alias.name.find(':') != std::string::npos;
    if (has_tag && small.size() >= 3 && alias.name.starts_with(small)) found.push_back(&alias);
  }
  return found;
}

std::string unsupported_family(std::string_view text) {
  const std::string family = lower_case(text.substr(0, text.find(':')));
  std::istringstream lines{std::string(alias_table)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(unsupported)) continue;
    std::istringstream names(line.substr(unsupported.size()));
    for (std::string name; names >> name;) {
      if (name == family) return family;
    }
  }
  return "";
}

AliasChoice choose(const Alias& alias, std::uint64_t memory) {
  const bool is_too_large = memory > 0 && alias.original_bytes > memory / 4 * 3;
  if (!alias.quantized.empty() && (alias.is_gated || is_too_large))
    return {alias.quantized, alias.quantized_bytes};
  return {alias.original, alias.original_bytes};
}

}  // namespace inferno::hub
