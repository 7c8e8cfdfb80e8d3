// Where the hub is, with which token, and where models are stored: the settings in Hugging Face's environment
// variables, as one plain struct. Nothing here uses the network.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a '/' at its end
  std::string endpoint_source = "default";          // or the name of the variable that set it
  std::filesystem::path cache;                      // <HF_HUB_CACHE>; empty if there is no home directory
  std::string token;                                // empty: requests are anonymous. Never part of a message.
  std::string token_source;          // "HF_TOKEN", or the file the token was read from; for messages
  std::filesystem::path token_file;  // the file that may hold a token
  std::string offline_reason;        // "HF_HUB_OFFLINE=1"; empty if the network may be used
  bool may_link = true;              // snapshots are symbolic links to blobs
  bool shows_progress = true;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  // an attempt ends after this long without a byte
  std::string ca_file, ca_folder;                   // empty: the system's
  std::string user_agent = "inferno";
  // For tests: multiplies every wait between attempts, and timeouts too, but those by at least 0.01.
  double time_scale = 1;

  bool is_offline() const { return !offline_reason.empty(); }
};

// Access to the environment, which only `cli` may read.
struct Variables {
  std::function<std::optional<std::string>(std::string_view name)>
      get;                                                     // nullopt also if the variable is empty
  std::function<std::string(std::string_view path)> expanded;  // replaces ~ and $NAME
  std::optional<std::filesystem::path> cache;                  // from HF_HUB_CACHE and related variables
};

// Error{invalid_request} naming the variable if its value is invalid.
HubSettings hub_settings(const Variables& variables);

// "1", "on", "yes" and "true" in any case, as Hugging Face's tools read their switches.
bool is_true(std::string_view value);

// Error{network} naming the variable, if the settings forbid network access. `wanted` is what needs
// the network, for example "search".
void require_online(const HubSettings& settings, const std::string& wanted);

}  // namespace inferno::hub
