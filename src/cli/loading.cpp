#include "cli/loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/sizes.h"
#include "base/thread_pool.h"
#include "base/utf8.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/streams.h"

namespace inferno {
namespace {

// "model.layers.12.up" becomes "model.layers.*.up".
std::string without_numbers(const std::string& name) {
  std::string out;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_digit = name[at] >= '0' && name[at] <= '9';
    const bool begins_part = at == 0 || name[at - 1] == '.';
    if (!is_digit || !begins_part) {
      out += name[at];
      continue;
    }
    const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    const bool is_part = end == name.size() || name[end] == '.';
    out += is_part ? "*" : name.substr(at, end - at);
    at = end - 1;
  }
  return out;
}

std::string flag_of(const SettingWithoutEffect& setting, const TextRequest& request) {
  if (setting.setting == "reasoning_effort") return "--reasoning-effort";
  return request.think.value_or(false) ? "--think" : "--no-think";
}

}  // namespace

void print_device(const DeviceInfo& info) {
  say(fmt::format("device: {} ({})\n", info.name, info.kernels));
  const int cores = usable_cores();
  if (info.threads <= cores) return;
  say(fmt::format("note: {} threads share the {} that this process may use\n", info.threads,
                  counted(static_cast<std::uint64_t>(cores), "core")));
}

std::unique_ptr<TextModel> load_text_model(const ResolvedModel& model, const LoadOptions& options) {
  std::optional<LoadMeter> meter;
  return std::make_unique<TextModel>(model, options.model,
                                     LoadCallbacks{.device_opened =
                                                       [&](const DeviceInfo& info) {
                                                         if (!options.quiet) print_device(info);
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
                                                         if (options.quiet) return;
                                                         for (const std::string& note : report.notes)
                                                           say(fmt::format("note: {}\n", printable(note)));
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
            fmt::format("{} has no effect: this model has no {}", flag,
                        setting.setting == "reasoning_effort" ? "setting for it" : "thinking mode"));
        break;
      case NoEffect::is_default:
        notes.push_back(fmt::format("{} has no effect: it is this model's default", flag));
        break;
    }
  }
  return notes;
}

std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions) {
  struct Name {
    const std::string* first = nullptr;
    std::size_t count = 0;
  };
  struct Change {
    std::string text;
    std::vector<std::pair<std::string, Name>> names;
  };
  std::vector<Change> changes;
  for (const Conversion& one : conversions) {
    const std::string text = fmt::format("{}; {}", one.change, one.why), kind = without_numbers(one.tensor);
    auto change = std::ranges::find(changes, text, &Change::text);
    if (change == changes.end()) change = changes.insert(change, {text, {}});
    auto name = std::ranges::find(change->names, kind, &std::pair<std::string, Name>::first);
    if (name == change->names.end()) name = change->names.insert(name, {kind, {&one.tensor, 0}});
    ++name->second.count;
  }
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    std::string names;
    for (const auto& [kind, name] : change.names) {
      if (!names.empty()) names += ", ";
      names += name.count == 1 ? *name.first : fmt::format("{} ({} tensors)", kind, name.count);
    }
    lines.push_back(fmt::format("{}: {}", names, change.text));
  }
  return lines;
}

void print_load_report(const LoadReport& report, double seconds) {
  const double gigabytes = static_cast<double>(report.weights.bytes) / 1e9;
  say(fmt::format("loaded {:.2f} GB in {:.2f} s, {:.2f} GB/s\n", gigabytes, seconds, gigabytes / seconds));
  for (const std::string& line : conversion_lines(report.conversions)) {
    say(fmt::format("converted: {}\n", printable(line)));
  }
}

}  // namespace inferno
