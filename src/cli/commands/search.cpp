// `inferno search`: models on the hub, and whether they fit this machine, in one request.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands/shared/command_line.h"
#include "cli/download/display.h"
#include "cli/download/interruptible.h"
#include "cli/download/search_results.h"
#include "cli/environment.h"
#include "cli/terminal/markdown/word_wrap.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "service/loading/device.h"

namespace inferno::command {
namespace {

struct SearchOptions {
  std::string query, author, format;
  hub::Sort sort = hub::Sort::downloads;
  int limit = 20;
  bool fits = false, json = false;
};

void run(const SearchOptions& options) {
  const Environment environment = Environment::of_process();
  hub::HubClient client(hub_settings(environment), [] { return SignalWatcher::received() != 0; });
  hub::SearchQuery query = {.text = options.query,
                            .author = options.author,
                            .filters = {"text-generation"},
                            .sort = options.sort,
                            .limit = options.limit};
  if (options.fits) query.limit = std::min(1000, options.limit * 5);  // in one request; some will not fit
  if (!options.format.empty()) query.filters.push_back(options.format);
  const std::unique_ptr<Backend> backend = open_device({});
  const LocalMemory memory = local_memory(*backend);
  std::vector<hub::FoundOnHub> all;
  {
    const SignalWatcher watcher(stop_signals);
    WaitNotice waits;
    run_interruptibly([&] { all = client.search(query); }, [&] { waits.show(client.gate()->pause()); },
                      [] {});
  }
  std::vector<SearchResult> results;
  for (const hub::FoundOnHub& found : all) {
    SearchResult result = judge(found, memory);
    if (options.fits && !result.fits.value_or(false)) continue;
    results.push_back(std::move(result));
    if (static_cast<int>(results.size()) == options.limit) break;
  }
  if (options.json) {
    fmt::print("{}", search_json(results));
  } else if (results.empty()) {
    say(fmt::format("{}\n", options.fits ? "no matching model fits this machine" : "no models found"));
  } else {
    const int columns = terminal::line_columns(STDOUT_FILENO);
    fmt::print("{}", search_table(results, memory, columns));
    const std::string next =
        "inferno plan MODEL shows what a model needs; inferno download MODEL fetches it\n";
    say(terminal::wrapped(next, columns));
  }
}

}  // namespace

void search(CommandLine app) {
  const Command command = app.command("search", "Search the hub for models, and see which fit this machine");
  const auto options = std::make_shared<SearchOptions>();
  command.option("QUERY", options->query, "words in the model's name").required();
  command.option("--author", options->author, "only models of this organization or user");
  command.option("--format", options->format, "only models in this format").one_of({"gguf", "safetensors"});
  command.choice<hub::Sort>("--sort", options->sort,
                            {{"downloads", hub::Sort::downloads},
                             {"likes", hub::Sort::likes},
                             {"trending", hub::Sort::trending},
                             {"updated", hub::Sort::updated}},
                            "the order of results; downloads if not given");
  command.option("--limit", options->limit, "maximum number of models").range(1, 1000).shows_default();
  command.flag("--fits", options->fits, "only models that fit this machine");
  command.flag("--json", options->json, "print JSON");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
