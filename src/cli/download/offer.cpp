#include "cli/download/offer.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "cli/download/run.h"
#include "cli/terminal/streams.h"

namespace inferno {
namespace {

bool is_wanted(const ModelMatch& match) {
  const std::string state = match.here == nullptr ? "not on this machine"
                            : match.here->whole_bytes > 0
                                ? fmt::format("incomplete ({} of {})", human_size(match.here->bytes),
                                              human_size(match.here->whole_bytes))
                                : "incomplete";
  return ask_yes(fmt::format("{} is {}. Download it?", match.download->text(), state)).value_or(false);
}

}  // namespace

ResolvedModel resolve_or_download(Catalogue& catalogue, const std::string& name, bool agreed,
                                  const hub::HubSettings& settings) {
  const ModelMatch match = catalogue.look_up(name);
  const bool can_download = !match.is_complete() && match.download && !settings.is_offline();
  if (can_download && (agreed || is_wanted(match))) {
    download_model(settings, *match.download, {.asks = !agreed});
    catalogue.refresh();
  }
  return catalogue.resolve(name);
}

}  // namespace inferno
