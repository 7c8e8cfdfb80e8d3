#include "cli/model_offer.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/sizes.h"
#include "cli/download/run.h"
#include "cli/hub_environment.h"
#include "cli/model_choice.h"
#include "cli/model_resolution.h"
#include "cli/terminal/streams.h"

namespace inferno {

void offer_download(const std::string& wanted, bool agreed, const Environment& environment) {
  std::error_code status;
  if (wanted.empty() || std::filesystem::exists(wanted, status)) return;
  const std::vector<FoundModel> found = models_here(environment);
  const FoundModel* here = find_model(wanted, found);
  if (here != nullptr && (here->is_complete() || !here->cached)) return;
  const hub::HubSettings settings = hub_settings(environment);
  if (settings.is_offline()) return;
  const hub::ParsedName parsed = hub::parse_model_name(wanted, settings.endpoint);
  const auto* asked = std::get_if<hub::ModelName>(&parsed);
  hub::ModelName name = here != nullptr ? here->cached->name : asked != nullptr ? *asked : hub::ModelName{};
  if (name.organisation.empty()) return;  // no hub has it under this name
  if (!agreed) {
    const std::string state = here == nullptr ? "not on this machine"
                              : here->whole_bytes > 0
                                  ? fmt::format("only partly here ({} of {})", human_size(here->bytes),
                                                human_size(here->whole_bytes))
                                  : "only partly here";
    if (!ask_yes(fmt::format("{} is {}. Download it?", name.text(), state)).value_or(false)) return;
  }
  download_model(settings, name, {.asks = !agreed});
}

}  // namespace inferno
