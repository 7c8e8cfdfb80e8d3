#include "hub/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_token_bytes = 4096;

// A line break in a token would end its HTTP header and start another one.
std::string checked_token(std::string_view text, const std::string& source) {
  std::string token(trimmed(text));
  const bool harmless = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7F; });
  if (harmless && token.size() <= max_token_bytes) return token;
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected a token without spaces or special characters", source),
       {.why = {}, .next = "copy the token again from https://huggingface.co/settings/tokens"});
}

std::string first_bytes(const fs::path& file) {
  return read_start(file, max_token_bytes + 64).value_or("");
}

void read_token(HubSettings& settings, const Variables& variables) {
  const auto folder = variables.get("HF_HOME");
  if (const auto path = variables.get("HF_TOKEN_PATH")) {
    settings.token_file = variables.expanded(*path);
  } else if (folder) {
    settings.token_file = fs::path(variables.expanded(*folder)) / "token";
  } else if (const auto caches = variables.get("XDG_CACHE_HOME")) {
    settings.token_file = fs::path(variables.expanded(*caches)) / "huggingface/token";
  } else if (const std::string home = variables.expanded("~"); home != "~") {
    settings.token_file = fs::path(home) / ".cache/huggingface/token";
  }
  if (is_true(variables.get("HF_HUB_DISABLE_IMPLICIT_TOKEN").value_or(""))) return;
  for (const std::string name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto value = variables.get(name)) settings.token = checked_token(*value, name);
    settings.token_source = settings.token.empty() ? "" : name;
    if (!settings.token.empty()) return;
  }
  if (settings.token_file.empty()) return;
  settings.token = checked_token(first_bytes(settings.token_file), settings.token_file.string());
  if (!settings.token.empty()) settings.token_source = settings.token_file.string();
}

void read_endpoint(HubSettings& settings, const Variables& variables) {
  for (const std::string name : {"MODEL_ENDPOINT", "HF_ENDPOINT"}) {
    const auto value = variables.get(name);
    if (!value) continue;
    std::string endpoint(trimmed(*value));
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://")) {
      fail(ErrorKind::invalid_request,
           fmt::format("{}={}: expected a URL that starts with https://", name, *value));
    }
    settings.endpoint = std::move(endpoint);
    settings.endpoint_source = name;
    return;
  }
}

double number(const Variables& variables, const char* name, double otherwise) {
  const auto value = variables.get(name);
  if (!value) return otherwise;
  double parsed = 0;
  const char* end = value->data() + value->size();
  const auto [stop, problem] = std::from_chars(value->data(), end, parsed);
  if (problem == std::errc() && stop == end && std::isfinite(parsed) && parsed > 0 && parsed <= 86'400)
    return parsed;
  fail(ErrorKind::invalid_request, fmt::format("{}={}: expected a positive number", name, *value));
}

std::chrono::milliseconds seconds(double count) {
  return std::chrono::milliseconds(std::max(1L, std::lround(count * 1000)));
}

std::string first_set(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto value = variables.get(name)) return variables.expanded(*value);
  }
  return {};
}

}  // namespace

bool is_true(std::string_view value) {
  constexpr std::array<std::string_view, 4> words = {"1", "on", "yes", "true"};
  return std::ranges::find(words, lower_case(value)) != words.end();
}

HubSettings hub_settings(const Variables& variables) {
  HubSettings settings;
  settings.cache = variables.cache.value_or(fs::path());
  read_endpoint(settings, variables);
  read_token(settings, variables);
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    const auto value = variables.get(name);
    if (value && is_true(*value) && !settings.is_offline())
      settings.offline_reason = fmt::format("{}={}", name, *value);
  }
  settings.may_link = !is_true(variables.get("HF_HUB_DISABLE_SYMLINKS").value_or(""));
  settings.shows_progress = !is_true(variables.get("HF_HUB_DISABLE_PROGRESS_BARS").value_or(""));
  settings.time_scale = number(variables, "INFERNO_HUB_TIME_SCALE", 1);
  settings.connect_timeout = seconds(number(variables, "HF_HUB_ETAG_TIMEOUT", 10));
  settings.stall_timeout = seconds(number(variables, "HF_HUB_DOWNLOAD_TIMEOUT", 30));
  settings.ca_file = first_set(variables, {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"});
  settings.ca_folder = first_set(variables, {"SSL_CERT_DIR"});
  return settings;
}

void require_online(const HubSettings& settings, const std::string& wanted) {
  if (!settings.is_offline()) return;
  fail(ErrorKind::network,
       fmt::format("{} needs the network, but {} is set", wanted, settings.offline_reason),
       {.why = {},
        .next = "unset the variable and run again, or use a model that is on this machine (inferno list)"});
}

}  // namespace inferno::hub
