// From what a user said about the model, or did not say, to one that can be opened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/model_discovery.h"

namespace inferno {

struct ChosenModel {
  std::string name;            // for people
  std::filesystem::path path;  // empty: the built-in model
};

// `wanted` is a path or a name. Empty: the built-in model, or the only one where none is built in;
// Error{invalid_request} with the names when there are several, Error{not_found} when there is none.
ChosenModel choose_model(const std::string& wanted, const std::vector<FoundModel>& found);

// "  1  org/name  1.2 GB", one line for each model.
std::string model_list(const std::vector<FoundModel>& found);

}  // namespace inferno
