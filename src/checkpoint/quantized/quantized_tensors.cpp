#include "checkpoint/quantized/quantized_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/quantized/quantization_refusals.h"
#include "checkpoint/quantized/quantized_module.h"

namespace inferno {
namespace {

// The names of a quantized module's tensors after the module's own.
constexpr std::array suffixes = {std::string_view(".qweight"),
                                 std::string_view(".qzeros"),
                                 std::string_view(".scales"),
                                 std::string_view(".g_idx"),
                                 std::string_view(".weight_packed"),
                                 std::string_view(".weight_scale"),
                                 std::string_view(".weight_scale_inv"),
                                 std::string_view(".weight_scale_2"),
                                 std::string_view(".weight_global_scale"),
                                 std::string_view(".weight_shape"),
                                 std::string_view(".weight_zero_point"),
                                 std::string_view(".weight_g_idx"),
                                 std::string_view(".weight.absmax"),
                                 std::string_view(".weight.quant_map"),
                                 std::string_view(".weight.nested_absmax"),
                                 std::string_view(".weight.nested_quant_map"),
                                 std::string_view(".weight.quant_state.bitsandbytes__nf4"),
                                 std::string_view(".weight.quant_state.bitsandbytes__fp4"),
                                 std::string_view(".SCB"),
                                 std::string_view(".weight_format")};
constexpr std::string_view weight_suffix = ".weight";
constexpr std::string_view deepseek_scale = ".scale";

// Scales of FP8 caches: of outputs if they are those of the projections of keys and values.
constexpr std::array cache_suffixes = {
    std::string_view(".k_scale"), std::string_view(".v_scale"), std::string_view(".kv_scale"),
    std::string_view(".k_proj.output_scale"), std::string_view(".v_proj.output_scale")};

// Scales of activations. Nothing reads them: activations are float, whatever the config says.
constexpr std::array unread_suffixes = {
    std::string_view(".input_scale"),        std::string_view(".input_zero_point"),
    std::string_view(".input_global_scale"), std::string_view(".activation_scale"),
    std::string_view(".input_scale_ub"),     std::string_view(".output_scale"),
    std::string_view(".output_zero_point"),  std::string_view(".q_scale"),
    std::string_view(".k_zero_point"),       std::string_view(".v_zero_point")};
constexpr std::string_view input_factor = ".pre_quant_scale";

bool is_fp8(const SafetensorsEntry& entry) {
  return entry.type->name == "F8_E4M3" || entry.type->name == "F8_E5M2";
}

// Whether the weight alone shows that its module is quantized.
bool has_codes(const SafetensorsEntry& entry) {
  return is_fp8(entry) || entry.type->name == "I8";
}

std::string path_of(const std::filesystem::path& directory, const SafetensorsEntry& entry) {
  return (directory / entry.file).string();
}

using Modules = std::map<std::string, QuantizedModule, std::less<>>;

void add_part(Modules& modules, const std::filesystem::path& directory, const SafetensorsEntries& entries,
              std::string_view name, std::string_view suffix) {
  const auto entry = entries.find(name);
  if (entry == entries.end()) return;
  std::string module(name.substr(0, name.size() - suffix.size()));
  QuantizedModule& one = modules[module];
  one.name = std::move(module);
  if (one.origin.empty() || suffix == ".qweight" || suffix == ".weight_packed") {
    one.origin = path_of(directory, entry->second);
  }
  one.parts[suffix] = &entry->second;
}

Modules find_modules(const SafetensorsEntries& entries, const std::filesystem::path& directory) {
  Modules modules;
  for (const auto& [name, entry] : entries) {
    for (const std::string_view suffix : suffixes) {
      if (name.ends_with(suffix) && name.size() > suffix.size()) {
        add_part(modules, directory, entries, name, suffix);
      }
    }
    if (name.ends_with(weight_suffix) && has_codes(entry)) {
      add_part(modules, directory, entries, name, weight_suffix);
    }
  }
  for (auto& [name, module] : modules) {
    add_part(modules, directory, entries, name + std::string(weight_suffix), weight_suffix);
    if (module.find(weight_suffix) != nullptr && module.type_of(weight_suffix).starts_with("F8")) {
      add_part(modules, directory, entries, name + std::string(deepseek_scale), deepseek_scale);
    }
  }
  return modules;
}

bool has_integers(const QuantizedModule& module) {
  if (module.find(".qweight") != nullptr || module.type_of(".weight_packed") == "I32") return true;
  return module.type_of(".weight") == "I8" && module.find(".weight.absmax") == nullptr;
}

// Tensors that belong to a set without its codes, and codes that are there twice.
void check_set(const QuantizedModule& module) {
  const bool packed = module.find(".qweight") != nullptr || module.find(".weight_packed") != nullptr;
  const StoredTensor* weight = module.find(".weight");
  if (packed && weight != nullptr) {
    module.refuse(fmt::format("has both {} and .weight",
                              module.find(".qweight") != nullptr ? ".qweight" : ".weight_packed"));
  }
  if (!packed && weight == nullptr) {
    module.refuse(fmt::format("has {}, but no codes", module.parts.begin()->first));
  }
  if (packed || has_integers(module) || module.find(".weight.absmax") != nullptr) return;
  const std::string_view type = module.type_of(".weight");
  if (type == "F8_E5M2")
    module.refuse_layout("has weights of type F8_E5M2", "of FP8 weights only E4M3 is read");
  if (type == "U8" && module.find(".weight_scale_2") != nullptr) return;
  if (!type.starts_with("F8")) {
    module.refuse(fmt::format("has {}, but weights of type {}", module.parts.begin()->first, type));
  }
}

std::string_view name_of(WeightCoding coding) {
  switch (coding) {
    case WeightCoding::integers: return "integers";
    case WeightCoding::fp8: return "FP8";
    case WeightCoding::mxfp8: return "MXFP8";
    case WeightCoding::nvfp4: return "NVFP4";
    case WeightCoding::mxfp4: return "MXFP4";
    case WeightCoding::table4: return "four-bit codes of a table";
  }
  return "";
}

// The tensors decide; a config that says otherwise is an error that names both.
void compare(const QuantizedModule& module, const QuantizationConfig& config, const FoundScheme& found) {
  const std::optional<QuantScheme> given = config.scheme_of(module.name);
  if (!given) {
    if (config.rules.empty()) return;
    module.refuse(fmt::format("is quantized, but {} has no rule for it", config.origin));
  }
  const auto contradict = [&](const std::string& said, const std::string& is) {
    module.refuse(fmt::format("has {}, but {}: {} says {}", is, config.origin, quote(given->field), said));
  };
  if (given->is_left_out) contradict("that it is not quantized", "quantized tensors");
  if (given->coding && *given->coding != found.coding) {
    contradict(std::string(name_of(*given->coding)), std::string(name_of(found.coding)));
  }
  if (given->bits != 0 && given->bits != found.bits) {
    contradict(fmt::format("{} bits", given->bits), fmt::format("{} bits", found.bits));
  }
  if (given->group == 0 || found.groups == 0) return;
  const std::int64_t group = given->group < 0 ? found.cols : given->group;
  if ((found.cols + group - 1) / group != found.groups) {
    contradict(fmt::format("groups of {} columns", given->group),
               fmt::format("{} groups of {} columns", found.groups, found.cols / found.groups));
  }
}

SafetensorsEntries take_cache_scales(SafetensorsEntries& entries) {
  SafetensorsEntries scales;
  for (auto at = entries.begin(); at != entries.end();) {
    const bool is_scale = std::ranges::any_of(
        cache_suffixes, [&](std::string_view suffix) { return at->first.ends_with(suffix); });
    if (const auto here = at++; is_scale) scales.insert(entries.extract(here));
  }
  return scales;
}

void remove_unread(SafetensorsEntries& entries, const std::filesystem::path& directory) {
  std::erase_if(entries, [&](const auto& entry) {
    const auto& [name, tensor] = entry;
    if (name.ends_with(input_factor)) {
      refuse_quantization({.origin = path_of(directory, tensor),
                           .field = name,
                           .value = "",
                           .why = "it multiplies the inputs of a module, which Inferno does not do"});
    }
    return std::ranges::any_of(unread_suffixes,
                               [&](std::string_view suffix) { return name.ends_with(suffix); });
  });
}

}  // namespace

const StoredTensor* QuantizedModule::find(std::string_view suffix) const {
  const auto found = parts.find(suffix);
  return found == parts.end() ? nullptr : &found->second->tensor;
}

const StoredTensor& QuantizedModule::get(std::string_view suffix) const {
  const StoredTensor* found = find(suffix);
  if (found == nullptr) refuse(fmt::format("lacks its {}", suffix));
  return *found;
}

const StoredTensor& QuantizedModule::get_scales(std::string_view suffix) const {
  const StoredTensor& found = get(suffix);
  const std::string_view type = type_of(suffix);
  if (type != "F32" && type != "F16" && type != "BF16") {
    refuse_layout(fmt::format("has {} of type {}", suffix, type), "scales are read as F32, F16 and BF16");
  }
  return found;
}

std::string_view QuantizedModule::type_of(std::string_view suffix) const {
  const auto found = parts.find(suffix);
  return found == parts.end() ? std::string_view{} : found->second->type->name;
}

void QuantizedModule::refuse(std::string_view problem) const {
  fail(ErrorKind::corrupt, fmt::format("{}: the quantized module {} {}", origin, quote(name), problem),
       {.why = {}, .next = "download the model again, or use another checkpoint of it"});
}

void QuantizedModule::refuse_layout(std::string_view problem, std::string_view why) const {
  fail(ErrorKind::unsupported, fmt::format("{}: the quantized module {} {}", origin, quote(name), problem),
       {.why = std::string(why),
        .next = "use a GGUF file, the original repository, or another quantization of this model"});
}

void QuantizedModule::require_shape(std::string_view suffix,
                                    const std::vector<std::int64_t>& expected) const {
  const StoredTensor& found = get(suffix);
  if (found.shape == expected) return;
  refuse(fmt::format("has {} of shape [{}], expected [{}]", suffix, fmt::join(found.shape, ", "),
                     fmt::join(expected, ", ")));
}

SafetensorsEntries join_quantized(SafetensorsEntries& entries, const std::filesystem::path& directory,
                                  const QuantizationConfig& config) {
  SafetensorsEntries scales = take_cache_scales(entries);
  remove_unread(entries, directory);
  const Modules modules = find_modules(entries, directory);
  std::vector<std::pair<std::string, SafetensorsEntry>> joined;
  for (const auto& [name, module] : modules) {
    check_set(module);
    FoundScheme found;
    SafetensorsEntry entry = *module.parts.begin()->second;
    entry.tensor =
        has_integers(module) ? join_integers(module, config, found) : join_floats(module, config, found);
    entry.type = safetensors_type("U8");  // any that may be a weight
    compare(module, config, found);
    joined.emplace_back(name + std::string(weight_suffix), std::move(entry));
  }
  std::vector<std::string> used;
  for (const auto& [name, module] : modules) {
    for (const auto& [suffix, part] : module.parts) used.push_back(name + std::string(suffix));
  }
  for (const std::string& name : used) entries.erase(name);
  for (auto& [name, entry] : joined) entries.insert_or_assign(name, std::move(entry));
  return scales;
}

void refuse_undescribed(const SafetensorsEntries& entries, const std::filesystem::path& directory) {
  for (const auto& [name, entry] : entries) {
    if (!name.ends_with(".qweight") && !name.ends_with(".weight_packed")) continue;
    fail(ErrorKind::corrupt,
         fmt::format("{}: tensor {} is quantized, but config.json has no \"quantization_config\"",
                     path_of(directory, entry), quote(name)),
         {.why = "its words cannot be read without knowing who packed them",
          .next = "download the whole repository, or use another checkpoint of this model"});
  }
}

}  // namespace inferno
