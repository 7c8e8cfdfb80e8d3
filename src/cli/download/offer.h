// Resolves a model name; if the model is not complete on this machine and the user agrees, downloads it
// first.
#pragma once

#include <string>

#include "catalogue/catalogue.h"
#include "cli/environment.h"

namespace inferno {

// Downloads only with `agreed` or a yes at the terminal, where the question has the size and the time that
// the download takes, and never if the environment forbids the network. Exit if the user declines.
// Then, or without a download, Catalogue::resolve() and its errors.
ResolvedModel resolve_or_download(Catalogue& catalogue, const std::string& name, bool agreed,
                                  const Environment& environment);

}  // namespace inferno
