#include "cli/model_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/model_resolution.h"
#include "text/characters.h"

namespace inferno {

ChosenModel choose_model(const std::string& wanted, const std::vector<FoundModel>& found) {
  if (!wanted.empty()) {
    std::error_code status;
    if (std::filesystem::exists(wanted, status)) {
      require_whole(wanted);
      return {wanted, wanted};
    }
    return {wanted, require_model(wanted, found).path};
  }
  const bool has_builtin = !found.empty() && found.back().path.empty();
  if (has_builtin || found.size() == 1) return {found.back().name, found.back().path};
  if (found.empty()) {
    fail(ErrorKind::not_found, "no model given and none found",
         {.why = "looked in the folders of $INFERNO_MODELS and in the Hugging Face cache",
          .next = "give a model directory or a .gguf file, or set INFERNO_MODELS to a folder of models"});
  }
  std::vector<std::string_view> names;
  for (const FoundModel& model : found) names.push_back(model.name);
  fail(ErrorKind::invalid_request, "no model given and several found",
       {.why = fmt::format("found are: {}", fmt::join(names, ", ")), .next = "give one of these names"});
}

std::string model_list(const std::vector<FoundModel>& found) {
  int widest = 0;
  for (const FoundModel& model : found) widest = std::max(widest, columns(printable(model.name)));
  std::string list;
  for (std::size_t at = 0; at < found.size(); ++at) {
    const std::string name = printable(found[at].name);
    const auto padding = static_cast<std::size_t>(widest - columns(name));
    list += fmt::format("{:>4}  {}{}  {:>9}\n", at + 1, name, std::string(padding, ' '),
                        human_size(found[at].bytes));
  }
  return list;
}

}  // namespace inferno
