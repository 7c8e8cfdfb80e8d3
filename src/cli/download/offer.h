// Resolves a model name; if the model is not complete on this machine and the user agrees, downloads it
// first.
#pragma once

#include <string>

#include "catalogue/catalogue.h"
#include "hub/settings.h"

namespace inferno {

// Downloads only with `agreed` or a yes at the terminal, and never if the settings forbid the network. Then,
// or without a download, Catalogue::resolve() and its errors.
ResolvedModel resolve_or_download(Catalogue& catalogue, const std::string& name, bool agreed,
                                  const hub::HubSettings& settings);

}  // namespace inferno
