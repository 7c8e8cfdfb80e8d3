// The numbered list of models that `play` offers when none was named.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/inventory.h"

namespace inferno::play {

// Those that can be loaded.
std::vector<FoundModel> complete_models(const Inventory& inventory);

// "  1  org/name  1.2 GB", one line for each model.
std::string model_menu(std::span<const FoundModel> models);

// The model that an answer to the menu means: a number from 1, or a name. nullptr if it is neither.
const FoundModel* choose_from_menu(std::string_view answer, std::span<const FoundModel> models);

}  // namespace inferno::play
