// A model that somebody asked for and that is not here, or not all of it: brought here when they agree.
#pragma once

#include <string>

#include "cli/environment.h"

namespace inferno {

// Does nothing for a path, for no name at all, and for a model that is here and whole. Otherwise downloads it
// when `agreed`, or when somebody at the terminal says yes; else returns, and whoever wants the model gets
// the error with the command that downloads it. HF_HUB_OFFLINE=1: never asks and never downloads.
void offer_download(const std::string& wanted, bool agreed, const Environment& environment);

}  // namespace inferno
