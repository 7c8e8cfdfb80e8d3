#include "cli/bench/stored_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sizes.h"
#include "chat/json.h"
#include "cli/bench/bars.h"
#include "cli/bench/report.h"

namespace inferno {
namespace {

constexpr double max_figure = 1e15;

class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) refuse(place_, "an object");
  }

  std::string text(const char* key) const {
    if (!has(key)) return {};
    if (!object_.at(key).is_string()) refuse(place_ + "." + key, "a string");
    return object_.at(key).get<std::string>();
  }
  // 0 if it is absent or null.
  double number(const char* key) const {
    return has(key) ? figure(object_.at(key), place_ + "." + key) : 0.0;
  }
  int integer(const char* key) const {
    const double value = number(key);
    if (value != std::floor(value) || value > 1e9) refuse(place_ + "." + key, "a whole number");
    return static_cast<int>(value);
  }
  std::vector<double> numbers(const char* key) const {
    std::vector<double> all;
    if (!has(key)) return all;
    if (!object_.at(key).is_array()) refuse(place_ + "." + key, "an array");
    for (const Json& value : object_.at(key)) all.push_back(figure(value, place_ + "." + key));
    return all;
  }

  [[noreturn]] static void refuse(const std::string& place, std::string_view expected) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected {}", place, expected),
         {.why = {}, .next = "bench -o json writes such files, and bench/results has one"});
  }

 private:
  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  static double figure(const Json& value, const std::string& place) {
    if (!value.is_number() || !(value.get<double>() >= 0.0) || value.get<double>() > max_figure)
      refuse(place, "a number from 0 to 1e15");
    return value.get<double>();
  }

  const Json& object_;
  std::string place_;
};

Measurement measurement_of(const Fields& row, const std::string& place) {
  Measurement found;
  found.test = row.text("test");
  found.batch = row.integer("batch");
  found.tokens = row.integer("tokens");
  found.depth = row.integer("depth");
  found.seconds = row.numbers("seconds");
  found.bytes_per_step = row.number("bytes_per_step");
  const bool has_times =
      !found.seconds.empty() && std::ranges::all_of(found.seconds, [](double time) { return time > 0.0; });
  if (found.batch < 1 || found.tokens < 1 || !has_times)
    Fields::refuse(place, "batch, tokens and seconds above 0");
  return found;
}

std::string place_of(std::string_view name, std::size_t row) {
  return fmt::format("{}: results[{}]", name, row);
}

std::string plot_of_report(const Json& stored, std::string_view name) {
  const Fields fields(stored, std::string(name));
  BenchReport report;
  report.model = fields.text("model");
  report.weights = fields.text("weights");
  report.device = fields.text("device");
  report.version = fields.text("version");
  report.commit = fields.text("commit");
  report.bandwidth_one_thread = fields.number("read_bandwidth_one_thread");
  report.bandwidth = fields.number("read_bandwidth");
  const Json& rows = stored.at("results");
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::string place = place_of(name, at);
    report.rows.push_back(measurement_of(Fields(rows[at], place), place));
  }
  return as_svg(report);
}

std::string label_of(const Fields& row, const Measurement& measured, bool is_prompt) {
  std::string label = fmt::format("{}, {}", row.text("shape"), row.text("weights"));
  if (is_prompt)
    return label + fmt::format(", {} tokens", grouped(static_cast<std::uint64_t>(measured.tokens)));
  if (measured.batch > 1) label += fmt::format(", {} streams", measured.batch);
  if (measured.depth > 0)
    label += fmt::format(", after {}", grouped(static_cast<std::uint64_t>(measured.depth)));
  return label;
}

std::string plot_of_collection(const Json& stored, std::string_view name) {
  const Fields fields(stored, std::string(name));
  std::vector<chart::BarPanel> panels = {{"Generation, one stream, tokens/s", {}},
                                         {"Generation, many streams, tokens/s of all", {}},
                                         {"Prompts, tokens/s", {}}};
  const Json& rows = stored.at("results");
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::string place = place_of(name, at);
    const Fields row(rows[at], place);
    const double other = row.number("llama_cpp");
    if (other == 0.0) continue;
    const Measurement measured = measurement_of(row, place);
    const bool is_prompt = measured.bytes_per_step == 0.0;
    chart::BarPanel& panel = panels[is_prompt ? 2 : measured.batch > 1 ? 1 : 0];
    panel.groups.push_back({label_of(row, measured, is_prompt),
                            {{"Inferno", measured.tokens_per_second()}, {"llama.cpp", other}}});
  }
  const std::string gpu = fields.text("gpu");
  return chart::as_bars(fmt::format("{} · inferno {}", gpu.substr(0, gpu.find(',')), fields.text("commit")),
                        std::move(panels));
}

}  // namespace

std::string plot_of_stored(std::string_view text, std::string_view name) {
  const Json stored = parse_json(text, name, LargeIntegers::round);
  if (!stored.is_object() || !stored.contains("results") || !stored.at("results").is_array())
    Fields::refuse(std::string(name), "an object with an array \"results\"");
  return stored.contains("model") ? plot_of_report(stored, name) : plot_of_collection(stored, name);
}

}  // namespace inferno
