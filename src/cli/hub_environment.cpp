#include "cli/hub_environment.h"

#include <fmt/format.h>

#include "cli/version.h"

namespace inferno {

hub::HubSettings hub_settings(const Environment& environment) {
  const auto cache = environment.hub_cache();
  hub::HubSettings settings =
      hub::hub_settings({.get = [&](std::string_view name) { return environment.get(name); },
                         .expanded = [&](std::string_view path) { return environment.expanded(path); },
                         .cache = cache ? std::optional(cache->path) : std::nullopt});
  settings.user_agent = fmt::format("inferno/{}", version);
  return settings;
}

}  // namespace inferno
