#include "cli/loading.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/utf8.h"
#include "cli/load_report.h"
#include "cli/terminal/progress.h"

namespace inferno {
namespace {

std::string flag_of(const SettingWithoutEffect& setting, const TextRequest& request) {
  if (setting.setting == "reasoning_effort") return "--reasoning-effort";
  return request.think.value_or(false) ? "--think" : "--no-think";
}

}  // namespace

void print_device(const DeviceInfo& info) {
  fmt::print(stderr, "device: {} ({})\n", info.name, info.kernels);
}

std::unique_ptr<TextModel> load_text_model(const ResolvedModel& model, const LoadOptions& options) {
  std::optional<LoadMeter> meter;
  return std::make_unique<TextModel>(model, options.model,
                                     LoadCallbacks{.device_opened =
                                                       [&](const DeviceInfo& info) {
                                                         print_device(info);
                                                         if (options.shows_meter) meter.emplace(model.name);
                                                       },
                                                   .progress =
                                                       [&](std::uint64_t done, std::uint64_t total) {
                                                         if (meter) meter->show(done, total);
                                                       },
                                                   .weights_loaded =
                                                       [&](const LoadReport& report, double seconds) {
                                                         meter.reset();
                                                         if (options.verbose)
                                                           print_load_report(report, seconds);
                                                         for (const std::string& note : report.notes)
                                                           fmt::print(stderr, "note: {}\n", printable(note));
                                                       }});
}

std::vector<std::string> notes_on_effects(const TextModel& model, const TextRequest& request) {
  std::vector<std::string> notes;
  for (const SettingWithoutEffect& setting : model.without_effect(request)) {
    const std::string flag = flag_of(setting, request);
    switch (setting.reason) {
      case NoEffect::completes_text:
        notes.push_back(fmt::format(
            "{} has no effect on text completion; {}", flag,
            model.chat() != nullptr ? "it is for conversations (--chat)" : "this model has no chat format"));
        break;
      case NoEffect::not_in_chat_format:
        notes.push_back(
            fmt::format("{} has no effect: this model's chat format ({}) does not have the setting, or it is "
                        "the default",
                        flag, model.chat()->name()));
        break;
    }
  }
  return notes;
}

}  // namespace inferno
