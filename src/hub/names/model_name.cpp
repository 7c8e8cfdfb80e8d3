#include "hub/names/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/names/aliases.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_text = 2048, max_part = 96, max_revision = 255;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  fail(ErrorKind::invalid_request, fmt::format("{}: not a model name", quote(text)),
       {.why = why,
        .next =
            "give org/name, org/name@revision, org/name:QUANT, a huggingface.co URL, a directory or a .gguf "
            "file"});
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The hub's own rule for both halves of an id. It excludes "..", and "--", which separates them in the cache.
std::string bad_part(std::string_view part, std::string_view what) {
  if (part.empty()) return fmt::format("the {} is empty", what);
  if (part.size() > max_part) return fmt::format("the {} has more than {} characters", what, max_part);
  for (const char c : part) {
    if (!is_word(c) && c != '-' && c != '.')
      return fmt::format("{} is not allowed in the {}", quote({&c, 1}), what);
  }
  if (!is_word(part.front()) || !is_word(part.back())) {
    return fmt::format("the {} begins or ends with '-' or '.'", what);
  }
  for (const std::string_view wrong : {"--", ".."}) {
    if (part.find(wrong) != std::string_view::npos) return fmt::format("the {} contains \"{}\"", what, wrong);
  }
  if (lower_case(part).ends_with(".git")) return fmt::format("the {} ends with .git", what);
  return "";
}

// A subset of what git allows in a reference.
std::string bad_revision(std::string_view revision) {
  if (revision.size() > max_revision) return "the revision is too long";
  if (const std::string reason = unsafe_reason(revision); !reason.empty()) return "the revision: " + reason;
  for (const char c : revision) {
    if (std::string_view(" ~^:?*[").find(c) != std::string_view::npos) {
      return fmt::format("{} is not allowed in the revision", quote({&c, 1}));
    }
  }
  if (revision.find("..") != std::string_view::npos || revision.find("@{") != std::string_view::npos ||
      revision.find("/.") != std::string_view::npos || revision.starts_with('.') || revision.ends_with('.') ||
      revision.starts_with('-') || lower_case(revision).ends_with(".lock")) {
    return "the revision is not a valid git reference";
  }
  return "";
}

std::string bad_quant(std::string_view quant) {
  if (quant.empty()) return "nothing follows the ':'";
  if (quant.size() > max_revision) return "the part after ':' is too long";
  if (const std::size_t at = quant.find_first_of("/@"); at != std::string_view::npos)
    return fmt::format("the part after ':' contains '{}'", quant[at]);
  if (const std::string reason = unsafe_reason(quant); !reason.empty())
    return "the part after ':': " + reason;
  return "";
}

ModelName checked(ModelName name, std::string_view text) {
  std::string reason = bad_part(name.name, "model name");
  if (reason.empty() && !name.organization.empty()) reason = bad_part(name.organization, "organization");
  if (reason.empty() && !name.revision.empty()) reason = bad_revision(name.revision);
  if (reason.empty() && !name.quant.empty()) reason = bad_quant(name.quant);
  if (reason.empty() && !name.path.empty()) {
    reason = unsafe_reason(name.path);
    if (!reason.empty()) reason = "the file: " + reason;
  }
  if (!reason.empty()) refuse(text, reason);
  return name;
}

// Removes ":QUANT" and "@revision" from the end of `rest`, in either order.
void take_suffixes(std::string_view& rest, ModelName& name, std::string_view text) {
  const std::size_t at = rest.find('@'), colon = rest.find(':');
  const std::size_t first = std::min(at, colon);
  if (first == std::string_view::npos) return;
  std::string_view suffixes = rest.substr(first);
  rest = rest.substr(0, first);
  while (!suffixes.empty()) {
    const bool is_revision = suffixes.front() == '@';
    const std::size_t end = std::min(suffixes.find(is_revision ? ':' : '@', 1), suffixes.size());
    std::string& field = is_revision ? name.revision : name.quant;
    if (!field.empty()) refuse(text, is_revision ? "it names two revisions" : "it names two quantizations");
    field = suffixes.substr(1, end - 1);
    if (field.empty()) refuse(text, fmt::format("nothing follows the '{}'", suffixes.front()));
    suffixes.remove_prefix(end);
  }
  if (lower_case(name.quant) == "latest") name.quant.clear();  // Ollama's tag for the default
}

std::string percent_decoded(std::string_view text, std::string_view whole) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    const int high = at + 2 < text.size() ? digit(text[at + 1]) : -1;
    const int low = at + 2 < text.size() ? digit(text[at + 2]) : -1;
    if (high < 0 || low < 0) refuse(whole, "a % is not followed by two hex digits");
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('/'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// The revision at the front of "revision/path"; refs/pr/N and refs/convert/X contain slashes themselves.
std::string take_revision(std::string_view& rest) {
  std::string revision(take_part(rest));
  if (revision == "refs" && (rest.starts_with("pr/") || rest.starts_with("convert/"))) {
    revision += fmt::format("/{}", take_part(rest));
    revision += fmt::format("/{}", take_part(rest));
  }
  return revision;
}

// "org/name" with its suffixes.
ModelName parse_id(std::string_view rest, std::string_view text) {
  ModelName name;
  take_suffixes(rest, name, text);
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    name.organization = rest.substr(0, slash);
    if (name.organization.empty()) refuse(text, "the organization is empty");
    rest.remove_prefix(slash + 1);
  }
  name.name = rest;
  return checked(std::move(name), text);
}

// hf://[models/]org/name[@revision][/path]
ModelName parse_scheme(std::string_view rest, std::string_view text) {
  if (rest.starts_with("models/")) rest.remove_prefix(7);
  for (const std::string_view other : {"datasets/", "spaces/", "buckets/"}) {
    if (rest.starts_with(other))
      refuse(text, fmt::format("{} are not models", other.substr(0, other.size() - 1)));
  }
  ModelName name;
  name.organization = take_part(rest);
  if (name.organization.empty()) refuse(text, "the organization is empty");
  // A revision may contain slashes, so it is removed before the name.
  const std::size_t at = rest.find('@'), slash = rest.find('/');
  if (at != std::string_view::npos && at < slash) {
    name.name = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    name.revision = take_revision(rest);
    if (name.revision.empty()) refuse(text, "nothing follows the '@'");
  } else {
    name.name = take_part(rest);
  }
  std::string_view last =
      rest.empty() ? std::string_view(name.revision.empty() ? name.name : name.revision) : "";
  if (const std::size_t colon = last.find(':'); colon != std::string_view::npos) {
    name.quant = last.substr(colon + 1);
    if (name.quant.empty()) refuse(text, "nothing follows the ':'");
    if (!name.revision.empty() && colon == 0) refuse(text, "nothing follows the '@'");
    (name.revision.empty() ? name.name : name.revision).resize(colon);
  }
  name.path = rest;
  return checked(std::move(name), text);
}

// The part of a URL after the host: org/name[/(tree|blob|resolve)/revision[/path]][?query][#fragment]
ModelName parse_address(std::string_view rest, std::string_view text) {
  rest = rest.substr(0, rest.find_first_of("?#"));
  while (rest.ends_with('/')) rest.remove_suffix(1);
  for (const std::string_view other : {"datasets/", "spaces/", "docs/", "api/"}) {
    if (rest.starts_with(other)) refuse(text, "it is not the URL of a model");
  }
  const std::size_t slash = rest.find('/');
  const std::size_t end = slash == std::string_view::npos ? slash : rest.find('/', slash + 1);
  ModelName name = parse_id(rest.substr(0, end), text);
  if (end == std::string_view::npos) return name;
  rest.remove_prefix(end + 1);
  const std::string_view page = take_part(rest);
  if (page != "tree" && page != "blob" && page != "resolve" && page != "raw") {
    refuse(text, fmt::format("{} is not a page of a model's files", quote(page)));
  }
  if (!name.revision.empty()) refuse(text, "it names two revisions");
  name.revision = percent_decoded(take_revision(rest), text);
  if (page != "tree") {
    name.path = percent_decoded(rest, text);
    if (name.path.empty()) refuse(text, "the URL ends before the file");
    if (!name.quant.empty()) refuse(text, "it names both a quantization and a file");
  } else if (!rest.empty()) {
    refuse(text, "it is the URL of a folder inside a model");
  }
  return checked(std::move(name), text);
}

constexpr std::string_view hub_hosts[] = {"huggingface.co", "www.huggingface.co", "hf.co"};

// The part after "https://host/" if the host is a hub; nullopt if the text is not a URL.
std::optional<std::string_view> after_host(std::string_view text, std::string_view endpoint) {
  const std::string small = lower_case(text);
  const bool has_scheme = small.starts_with("https://") || small.starts_with("http://");
  for (const std::string_view host : hub_hosts) {
    for (const std::string_view scheme : {"https://", "http://", ""}) {
      const std::string prefix = fmt::format("{}{}/", scheme, host);
      if (small.starts_with(prefix)) return text.substr(prefix.size());
    }
  }
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  if (has_scheme && text.size() > endpoint.size() && text.starts_with(endpoint) &&
      text[endpoint.size()] == '/') {
    return text.substr(endpoint.size() + 1);
  }
  if (has_scheme) refuse(text, "it is not a URL of huggingface.co or HF_ENDPOINT");
  return std::nullopt;
}

bool looks_like_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text.starts_with('~') || text == "." || text == ".." || text.ends_with('/') ||
         lower_case(text).ends_with(".gguf") ||
         std::count(
             text.begin(),
             text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find_first_of("@:"), text.size())),
             '/') > 1;
}

}  // namespace

std::string ModelName::id() const {
  return organization.empty() ? name : organization + "/" + name;
}

// An organization may have the name of a host, a model that of an alias, and a name that ends like a file
// would parse as one; those need a scheme.
std::string ModelName::text() const {
  const std::string whole = fmt::format("{}{}{}", id(), revision.empty() ? "" : "@", revision);
  const std::string_view scheme = organization == "models" ? "hf://models/" : "hf://";
  if (!path.empty()) return fmt::format("{}{}/{}", scheme, whole, path);
  const std::string plain = fmt::format("{}{}{}", whole, quant.empty() ? "" : ":", quant);
  const std::string small = lower_case(plain);
  const bool is_host = std::ranges::find(hub_hosts, lower_case(organization)) != std::end(hub_hosts);
  const bool is_alias = find_alias(small) != nullptr;
  if (!is_host && !is_alias && !small.ends_with(".gguf")) return plain;
  return fmt::format("{}{}", organization.empty() ? "hf.co/" : scheme, plain);
}

ParsedName parse_model_name(std::string_view text, std::string_view endpoint) {
  if (text.empty()) refuse(text, "it is empty");
  if (text.size() > max_text) refuse(text, "it is too long");
  const std::string small = lower_case(text);
  if (const Alias* alias = find_alias(small)) return parse_id(alias->original, text);
  if (small.starts_with("hf://")) return parse_scheme(text.substr(5), text);
  if (const auto rest = after_host(text, endpoint)) return parse_address(*rest, text);
  if (looks_like_path(text)) {
    if (text.find('\0') != std::string_view::npos) refuse(text, "it contains a control character");
    return fs::path(text);
  }
  return parse_id(text, text);
}

ModelName parse_hub_name(std::string_view text, std::string_view endpoint) {
  ParsedName parsed = parse_model_name(text, endpoint);
  if (auto* name = std::get_if<ModelName>(&parsed)) return std::move(*name);
  refuse(text, "it is a path, but a model on the hub is expected");
}

}  // namespace inferno::hub
