// Hostile templates, grouped by the budget that they exceed.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace inferno::hostile {

struct Seed {
  std::string source;
};

const std::vector<Seed>& large_sources();
const std::vector<Seed>& many_steps();
const std::vector<Seed>& deep();
const std::vector<Seed>& long_ranges();
const std::vector<Seed>& long_outputs();
const std::vector<Seed>& large_values();

// Similar templates within the budgets: the source, and the output or (beyond 100 characters) its length.
const std::vector<std::pair<std::string, std::string>>& harmless_templates();

}  // namespace inferno::hostile
