// `inferno list`: every model on this machine, whichever program stored it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/command_line.h"
#include "cli/environment.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "cli/terminal/text_table.h"

namespace inferno::command {
namespace {

std::string day_of(std::int64_t time) {
  if (time == 0) return "-";
  const std::time_t seconds = time;
  std::tm parts = {};
  if (::localtime_r(&seconds, &parts) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d}", parts);
}

std::string state_of(const FoundModel& model) {
  if (model.is_complete()) return "complete";
  if (model.whole_bytes == 0) return "partial";
  return fmt::format("partial, of {}", human_size(model.whole_bytes));
}

Json as_json(const FoundModel& model) {
  Json json = {{"name", model.name},       {"format", hub::name_of(model.format)},
               {"bytes", model.bytes},     {"complete", model.is_complete()},
               {"missing", model.missing}, {"last_use", model.last_use},
               {"place", model.place},     {"path", model.path().string()}};
  if (model.whole_bytes > 0) json["whole_bytes"] = model.whole_bytes;
  if (model.cached && !model.cached->commit.empty()) {
    json["commit"] = model.cached->commit;
    json["revisions"] = model.cached->revisions;
    if (!model.cached->stored.quant.empty()) json["quant"] = model.cached->stored.quant;
  }
  return json;
}

void print_table(const Inventory& inventory, const Environment& environment) {
  std::vector<std::vector<std::string>> rows;
  for (const FoundModel& model : inventory.models) {
    rows.push_back({model.name, std::string(hub::name_of(model.format)), human_size(model.bytes),
                    day_of(model.last_use), model.place, state_of(model)});
  }
  fmt::print("{}",
             text_table({{"NAME"}, {"FORMAT"}, {"SIZE", Align::right}, {"LAST USE"}, {"PLACE"}, {"STATE"}},
                        rows, terminal::line_columns(STDOUT_FILENO)));
  std::uint64_t bytes = 0;
  for (const hub::CachedRepository& repository : inventory.repositories) bytes += repository.bytes;
  if (const auto cache = environment.hub_cache(); cache && bytes > 0) {
    say(fmt::format("the hub cache {} uses {}\n", printable(cache->path.string()), human_size(bytes)));
  }
}

enum class Order { name, size, used };

// The largest and the last used first.
void sort(std::vector<FoundModel>& models, Order order) {
  if (order == Order::size) std::ranges::stable_sort(models, std::greater(), &FoundModel::bytes);
  if (order == Order::used) std::ranges::stable_sort(models, std::greater(), &FoundModel::last_use);
}

void run(bool json, Order order) {
  const Environment environment = Environment::of_process();
  Inventory inventory = take_inventory(catalogue_settings(environment).places);
  sort(inventory.models, order);
  if (!json) return print_table(inventory, environment);
  Json all = Json::array();
  for (const FoundModel& model : inventory.models) all.push_back(as_json(model));
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void list(CommandLine app) {
  const Command command = app.command("list", "List the models on this machine", {"ls"});
  const auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "print JSON");
  const auto order = std::make_shared<Order>(Order::name);
  command.choice<Order>("--sort", *order,
                        {{"name", Order::name}, {"size", Order::size}, {"used", Order::used}},
                        "the order of models; name if not given");
  command.run([json, order] { run(*json, *order); });
}

}  // namespace inferno::command
