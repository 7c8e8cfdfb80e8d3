// Rotary positions changed their place in config.json several times. Families see one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"

namespace inferno {

// Moves what newer files say under "rope_parameters", or inside "rope_scaling", to its older names:
// "rope_theta", "partial_rotary_factor" and "rope_scaling.*", whose kind is "rope_scaling.rope_type" and is
// absent when there is no scaling. Parameters given per kind of layer stay where they are, unread.
// Error{corrupt} when two places disagree.
void use_older_rope_names(Config::Values& values, std::vector<std::string>& others, std::string_view origin);

}  // namespace inferno
