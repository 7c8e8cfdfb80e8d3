#include "cli/download/offer.h"

#include <fmt/format.h>

#include "base/sizes.h"
#include "cli/download/fit.h"
#include "cli/download/measured_rate.h"
#include "cli/download/run.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"

namespace inferno {
namespace {

bool is_wanted(const ModelMatch& match, std::uint64_t bytes, const std::string& shortage,
               const Environment& environment) {
  const std::string state = match.here == nullptr ? "not on this machine"
                            : match.here->whole_bytes > 0
                                ? fmt::format("incomplete ({} of {})", human_size(match.here->bytes),
                                              human_size(match.here->whole_bytes))
                                : "incomplete";
  const std::string wanted = match.download->text();
  const std::string meant = match.name == wanted ? "" : fmt::format("{} means ", match.name);
  const bool agreed = ask_yes(fmt::format("{}{} ({}){} {}. {}Download it?", meant, wanted,
                                          size_and_time(bytes, last_download_rate(environment)),
                                          meant.empty() ? " is" : ", which is", state,
                                          shortage.empty() ? "" : shortage + ". "))
                          .value_or(false);
  if (!agreed) say("not downloaded\n");
  return agreed;
}

void download(const ModelMatch& match, bool agreed, const Environment& environment) {
  DownloadChoice choice = {.asks = !agreed};
  if (!agreed && match.download_bytes > 0) {
    // The table of aliases knows the size: no need to ask the hub before the user says yes.
    const std::string shortage = memory_shortage({.weight_bytes = match.download_bytes});
    if (!is_wanted(match, match.download_bytes, shortage, environment)) throw Exit{not_downloaded_code};
    choice.warns_of_memory = false;
  } else if (!agreed) {
    choice.is_wanted = [&](std::uint64_t bytes, const std::string& shortage) {
      return is_wanted(match, bytes, shortage, environment);
    };
  }
  download_model(environment, *match.download, choice);
}

}  // namespace

ResolvedModel resolve_or_download(Catalogue& catalogue, const std::string& name, bool agreed,
                                  const Environment& environment) {
  const ModelMatch match = catalogue.look_up(name);
  const bool can_download = !match.is_complete() && match.download && !hub_settings(environment).is_offline();
  if (can_download && (agreed || can_ask())) {
    download(match, agreed, environment);
    catalogue.refresh();
  }
  ResolvedModel model = catalogue.resolve(name);
  model.path = folder_of_weights(model.path);
  return model;
}

}  // namespace inferno
