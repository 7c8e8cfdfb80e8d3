// GGUF's tensor names: one table for all families, because llama.cpp has already normalized them.
#pragma once

#include <vector>

#include "model/architecture.h"

namespace inferno {

// Several rows for a slot are alternatives, the first that exists wins.
const std::vector<Naming>& gguf_names();

}  // namespace inferno
