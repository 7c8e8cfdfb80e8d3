// What the environment says about the hub.
#pragma once

#include "cli/environment.h"
#include "hub/settings.h"

namespace inferno {

// Error{invalid_request} naming a variable whose value means nothing.
hub::HubSettings hub_settings(const Environment& environment);

}  // namespace inferno
