// Opening devices and models for a command, with a report on stderr.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "service/text_model.h"

namespace inferno {

struct LoadOptions {
  TextModelOptions model;
  bool verbose = false;      // print how long loading took and what was converted
  bool quiet = false;        // print neither the device nor notes
  bool shows_meter = false;  // draw progress on stderr
};

// "device: NAME (KERNELS)" on stderr.
void print_device(const DeviceInfo& info);

// Prints the device, the progress and the notes of the loader.
std::unique_ptr<TextModel> load_text_model(const ResolvedModel& model, const LoadOptions& options);

// One sentence for each setting of the request that changes nothing.
std::vector<std::string> notes_on_effects(const TextModel& model, const TextRequest& request);

// One line for each kind of conversion, with its tensors; names that differ only in numbers are joined:
// "model.layers.*.norm.weight (24 tensors), model.norm.weight: bf16 to f32; …"
std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions);

// Prints the time and speed of loading and the conversions.
void print_load_report(const LoadReport& report, double seconds);

}  // namespace inferno
