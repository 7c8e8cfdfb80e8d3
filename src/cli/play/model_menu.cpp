#include "cli/play/model_menu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/sizes.h"
#include "base/utf8.h"
#include "catalogue/catalogue.h"
#include "text/characters.h"

namespace inferno::play {

std::vector<FoundModel> complete_models(const Inventory& inventory) {
  std::vector<FoundModel> complete = inventory.models;
  std::erase_if(complete, [](const FoundModel& model) { return !model.is_complete(); });
  return complete;
}

std::string model_menu(std::span<const FoundModel> models) {
  int widest = 0;
  for (const FoundModel& model : models) widest = std::max(widest, columns(printable(model.name)));
  std::string menu;
  for (std::size_t at = 0; at < models.size(); ++at) {
    const std::string name = printable(models[at].name);
    const auto padding = static_cast<std::size_t>(widest - columns(name));
    menu += fmt::format("{:>4}  {}{}  {:>9}\n", at + 1, name, std::string(padding, ' '),
                        human_size(models[at].bytes));
  }
  return menu;
}

const FoundModel* choose_from_menu(std::string_view answer, std::span<const FoundModel> models) {
  answer = trimmed(answer);
  if (answer.empty()) return nullptr;
  std::size_t number = 0;
  const auto [stop, problem] = std::from_chars(answer.data(), answer.data() + answer.size(), number);
  if (problem == std::errc() && stop == answer.data() + answer.size()) {
    return number >= 1 && number <= models.size() ? &models[number - 1] : nullptr;
  }
  const FoundModel* only = nullptr;
  for (const FoundModel& model : models) {
    if (model.name == answer) return &model;
    if (!answers_to(model, answer)) continue;
    if (only != nullptr) return nullptr;
    only = &model;
  }
  return only;
}

}  // namespace inferno::play
