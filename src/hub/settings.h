// Where the hub is, who asks, and where models are kept: what Hugging Face's environment variables say, as
// one plain struct. Nothing here touches the network.
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
  std::string endpoint_said_by = "default";         // or the variable
  std::filesystem::path cache;                      // <HF_HUB_CACHE>; empty when nobody knows a home
  std::string token;                                // empty: requests are anonymous. In no message, ever.
  std::string token_said_by;                        // "HF_TOKEN", or the file it was read from; for messages
  std::filesystem::path token_file;                 // where a token would be looked for
  std::string offline_because;                      // "HF_HUB_OFFLINE=1"; empty when the network may be used
  bool may_link = true;                             // snapshots are symbolic links to blobs
  bool shows_progress = true;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  // no byte for so long ends an attempt
  std::string ca_file, ca_folder;                   // empty: the system's
  std::string user_agent = "inferno";
  // Multiplies every wait between tries, and timeouts by a hundredth at least: for tests of the waiting
  // cases.
  double time_scale = 1;

  bool is_offline() const { return !offline_because.empty(); }
};

// How settings read the environment, which only `cli` may do.
struct Variables {
  std::function<std::optional<std::string>(std::string_view name)> get;  // nullopt also when it is empty
  std::function<std::string(std::string_view path)> expanded;            // ~ and $NAME replaced
  std::optional<std::filesystem::path> cache;                            // of HF_HUB_CACHE and its relatives
};

// Error{invalid_request} for a value that means nothing, naming the variable.
HubSettings hub_settings(const Variables& variables);

// "1", "on", "yes" and "true" in any case, as Hugging Face's tools read their switches.
bool is_true(std::string_view value);

// Error{network} with the variable that forbids it, when the settings forbid the network. `wanted` is what
// was asked for, say "openai/gpt-oss-20b is not in the cache".
void require_online(const HubSettings& settings, const std::string& wanted);

}  // namespace inferno::hub
