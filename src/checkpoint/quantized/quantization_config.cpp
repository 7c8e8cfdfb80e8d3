#include "checkpoint/quantized/quantization_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "checkpoint/config_json.h"
#include "checkpoint/quantized/quantization_refusals.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // GPTQModel's rules count in the order of the file
using Rule = QuantizationConfig::Rule;

constexpr std::uint64_t max_file = 16u << 20;
constexpr std::size_t max_rules = 4096;

// One object of a config, with messages that name the file and the field.
class Fields {
 public:
  Fields(std::string origin, std::string path, const Json& object)
      : origin_(std::move(origin)), path_(std::move(path)), object_(object) {
    if (!object.is_object()) wrong("", "an object");
  }

  const std::string& origin() const { return origin_; }
  std::string name_of(std::string_view field) const {
    return path_.empty() ? std::string(field) : fmt::format("{}{}{}", path_, field.empty() ? "" : ".", field);
  }
  // null counts as absent.
  const Json* find(std::string_view field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(std::string_view field) const {
    const Json* value = find(field);
    if (value == nullptr) return {};
    if (!value->is_string()) wrong(field, "a string");
    return value->get<std::string>();
  }
  int number(std::string_view field) const {  // 0 if absent
    const Json* value = find(field);
    if (value == nullptr) return 0;
    if (!value->is_number_integer() || value->get<std::int64_t>() < -1 ||
        value->get<std::int64_t>() > (1 << 30)) {
      wrong(field, "a whole number from -1 on");
    }
    return value->get<int>();
  }
  bool is_true(std::string_view field) const {
    const Json* value = find(field);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  bool is_false(std::string_view field) const {
    const Json* value = find(field);
    return value != nullptr && value->is_boolean() && !value->get<bool>();
  }
  std::vector<std::string> texts(std::string_view field) const {
    const Json* value = find(field);
    std::vector<std::string> out;
    if (value == nullptr) return out;
    if (!value->is_array()) wrong(field, "a list of strings");
    for (const Json& one : *value) {
      if (!one.is_string()) wrong(field, "a list of strings");
      out.push_back(one.get<std::string>());
    }
    return out;
  }
  Fields object(std::string_view field) const { return {origin_, name_of(field), *find(field)}; }
  const Json& json() const { return object_; }

  [[noreturn]] void refuse(std::string_view field, std::string_view why) const {
    const Json* value = find(field);
    refuse_quantization({.origin = origin_,
                         .field = name_of(field),
                         .value = value == nullptr ? "" : quote(value->dump()),
                         .why = std::string(why)});
  }

 private:
  [[noreturn]] void wrong(std::string_view field, std::string_view expected) const {
    fail(ErrorKind::corrupt, fmt::format("{}: expected {} for {}", origin_, expected, quote(name_of(field))));
  }

  std::string origin_, path_;
  const Json& object_;
};

bool looks_like_pattern(std::string_view text) {
  return text.find_first_of("*[]()|^$+?\\{}") != std::string_view::npos;
}

// Adds rules to a config.
class RuleList {
 public:
  RuleList(QuantizationConfig& config, const Fields& fields) : config_(config), fields_(fields) {}

  void add(Rule::Match match, std::string_view text, QuantScheme scheme) {
    if (config_.rules.size() >= max_rules) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: more than {} names and patterns of modules", fields_.origin(), max_rules));
    }
    Rule rule = {.match = match, .text = std::string(text), .pattern = {}, .scheme = std::move(scheme)};
    if (match == Rule::Match::pattern) {
      rule.pattern.emplace(text, fields_.origin() + ": " + rule.scheme.field, budget_);
    }
    config_.rules.push_back(std::move(rule));
  }
  // Names of modules that stay float.
  void leave_out(std::string_view field, bool wildcards) {
    for (const std::string& text : fields_.texts(field)) {
      const bool special = looks_like_pattern(text);
      const Rule::Match match = !special    ? Rule::Match::components
                                : wildcards ? Rule::Match::wildcard
                                            : Rule::Match::pattern;
      add(match, text, {.field = fields_.name_of(field), .is_left_out = true});
    }
  }
  // "re:..." or a name or a class.
  void add_target(std::string_view target, const QuantScheme& scheme) {
    if (target.starts_with("re:")) {
      add(Rule::Match::pattern, target.substr(3), scheme);
    } else if (target == "Linear") {
      add(Rule::Match::linear, target, scheme);
    } else {
      add(Rule::Match::whole_name, target, scheme);
    }
  }

 private:
  QuantizationConfig& config_;
  const Fields& fields_;
  std::shared_ptr<PatternBudget> budget_ = std::make_shared<PatternBudget>();
};

// -- GPTQ and AWQ --

void read_dynamic(RuleList& rules, const Fields& fields) {
  const Json* dynamic = fields.find("dynamic");
  if (dynamic == nullptr) return;
  if (!dynamic->is_object()) fields.refuse("dynamic", "it is expected to map patterns to settings");
  for (const auto& [key, value] : dynamic->items()) {
    QuantScheme scheme = {.field = fields.name_of("dynamic") + "." + key,
                          .coding = WeightCoding::integers,
                          .is_left_out = key.starts_with("-:")};
    const bool has_mark = key.starts_with("-:") || key.starts_with("+:");
    if (value.is_object()) {
      const Fields settings(fields.origin(), scheme.field, value);
      scheme.bits = settings.number("bits");
      scheme.group = settings.number("group_size");
      if (scheme.bits == 0) scheme.bits = fields.number("bits");
      if (scheme.group == 0) scheme.group = fields.number("group_size");
      scheme.is_symmetric = settings.find("sym") != nullptr ? settings.is_true("sym") : fields.is_true("sym");
    }
    rules.add(Rule::Match::pattern, has_mark ? std::string_view(key).substr(2) : std::string_view(key),
              scheme);
  }
}

void add_integers(RuleList& rules, const Fields& fields, const char* bits, const char* group) {
  rules.add(Rule::Match::linear, {},
            {.field = fields.name_of(bits),
             .coding = WeightCoding::integers,
             .bits = fields.number(bits),
             .group = fields.number(group),
             .is_symmetric = fields.is_true("sym")});
}

void read_gptq(QuantizationConfig& out, const Fields& fields) {
  const std::string format = fields.text("checkpoint_format");
  if (!format.empty() && format != "gptq" && format != "gptq_v2") {
    fields.refuse("checkpoint_format",
                  "its words are laid out for one library's kernels; only \"gptq\" and "
                  "\"gptq_v2\" are read");
  }
  if (fields.is_true("is_marlin_format")) {
    fields.refuse("is_marlin_format", "its words are laid out for one library's kernels");
  }
  if (const std::string type = fields.text("pack_dtype"); !type.empty() && type != "int32") {
    fields.refuse("pack_dtype", "only words of 32 bits are read");
  }
  for (const char* field : {"lora", "adapter"}) {
    if (fields.find(field) != nullptr) fields.refuse(field, "adapters beside quantized weights are not read");
  }
  if (const int bits = fields.number("bits"); bits != 0 && bits != 4 && bits != 8) {
    fields.refuse("bits", "only 4 and 8 bits are read");
  }
  out.method = QuantMethod::gptq;
  out.title = format == "gptq_v2" ? "GPTQ v2" : "GPTQ";
  out.zeros_less_one = format != "gptq_v2";
  RuleList rules(out, fields);
  if (fields.is_false("lm_head")) {
    rules.add(Rule::Match::whole_name, "lm_head", {.field = fields.name_of("lm_head"), .is_left_out = true});
  }
  read_dynamic(rules, fields);
  add_integers(rules, fields, "bits", "group_size");
}

void read_awq(QuantizationConfig& out, const Fields& fields) {
  std::string version = fields.text("version");
  std::ranges::transform(version, version.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!version.empty() && version != "gemm") {
    fields.refuse("version", "its words are laid out in another order; only \"gemm\" is read");
  }
  if (fields.text("backend") == "llm-awq") fields.refuse("backend", "llm-awq has a layout of its own");
  const char* bits = fields.find("w_bit") != nullptr ? "w_bit" : "bits";
  const char* group = fields.find("q_group_size") != nullptr ? "q_group_size" : "group_size";
  if (const int found = fields.number(bits); found != 0 && found != 4) {
    fields.refuse(bits, "AWQ weights are read with 4 bits");
  }
  out.method = QuantMethod::awq;
  out.title = "AWQ";
  RuleList rules(out, fields);
  rules.leave_out("modules_to_not_convert", false);
  add_integers(rules, fields, bits, group);
}

void read_auto_round(QuantizationConfig& out, const Fields& fields) {
  const std::string packing = fields.text("packing_format");
  if (const std::string type = fields.text("data_type"); !type.empty() && type != "int") {
    fields.refuse("data_type", "of auto-round's checkpoints only integers are read");
  }
  if (packing == "auto_round:auto_awq" || packing == "auto_round:awq") {
    read_awq(out, fields);
  } else {
    read_gptq(out, fields);
    out.zeros_less_one = packing == "auto_round:auto_gptq" || packing == "auto_round:gptq";
    if (!out.zeros_less_one && packing != "auto_round" && packing != "auto_round:gptqmodel") {
      fields.refuse("packing_format", "of auto-round's packings those of GPTQ and AWQ are read");
    }
  }
  // Layers with settings of their own; the tensors have them too.
  if (fields.find("extra_config") != nullptr) out.rules.clear();
  out.title = "auto-round " + out.title;
}

// -- FP8 --

void read_fp8(QuantizationConfig& out, const Fields& fields) {
  out.method = QuantMethod::fp8;
  out.title = "FP8";
  if (const std::string type = fields.text("fmt"); !type.empty() && type != "e4m3") {
    fields.refuse("fmt", "of FP8 weights only e4m3 is read");
  }
  QuantScheme scheme = {.field = fields.name_of("quant_method"), .coding = WeightCoding::fp8};
  if (const Json* block = fields.find("weight_block_size")) {
    const bool is_pair = block->is_array() && block->size() == 2 && (*block)[0].is_number_unsigned() &&
                         (*block)[1].is_number_unsigned();
    constexpr unsigned max_block = 65536;
    if (!is_pair || (*block)[0].get<std::uint64_t>() - 1 >= max_block ||
        (*block)[1].get<std::uint64_t>() - 1 >= max_block) {
      fields.refuse("weight_block_size", "two numbers are expected, the rows and columns of a block");
    }
    scheme.field = fields.name_of("weight_block_size");
    scheme.block_rows = (*block)[0].get<int>();
    scheme.block_cols = (*block)[1].get<int>();
  }
  RuleList rules(out, fields);
  for (const char* field : {"modules_to_not_convert", "ignored_layers"}) rules.leave_out(field, false);
  rules.add(Rule::Match::linear, {}, scheme);
  out.notes.push_back(activation_note(out.origin, "FP8"));
}

void read_fbgemm(QuantizationConfig& out, const Fields& fields) {
  read_fp8(out, fields);
  out.title = "FP8 (fbgemm)";
}

void read_mxfp8(QuantizationConfig& out, const Fields& fields) {
  read_fp8(out, fields);
  out.method = QuantMethod::mxfp8;
  out.title = "MXFP8";
  for (Rule& rule : out.rules) {
    if (!rule.scheme.is_left_out) rule.scheme = {.field = rule.scheme.field, .coding = WeightCoding::mxfp8};
  }
}

// -- compressed-tensors --

WeightCoding coding_of(const Fields& fields, const Fields& weights, const std::string& format) {
  const std::string type = weights.text("type");
  const int bits = weights.number("num_bits");
  if (format == "mxfp4-pack-quantized") return WeightCoding::mxfp4;
  if (format == "nvfp4-pack-quantized") return WeightCoding::nvfp4;
  if (format == "mxfp8-quantized") return WeightCoding::mxfp8;
  if (type == "float" && bits == 8) return WeightCoding::fp8;
  if (type == "float") fields.refuse("weights", "floats of this width are not read in this format");
  if (bits != 4 && bits != 8) {
    weights.refuse("num_bits",
                   "only 4 and 8 bits are read: the packing of other widths has changed over time");
  }
  return WeightCoding::integers;
}

void require_known_format(const Fields& fields, const std::string& format) {
  constexpr std::array known = {"pack-quantized",  "int-quantized",        "naive-quantized",
                                "float-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                "mxfp8-quantized", "mixed-precision",      ""};
  if (std::ranges::find(known, format) == known.end()) {
    fields.refuse("format", "this layout of compressed-tensors is not read");
  }
}

void read_block_structure(QuantScheme& scheme, const Fields& weights) {
  const Json* block = weights.find("block_structure");
  if (block == nullptr) return;
  int rows = 0, cols = 0;
  if (block->is_array() && block->size() == 2 && (*block)[0].is_number_unsigned() &&
      (*block)[1].is_number_unsigned()) {
    rows = static_cast<int>(std::min<std::uint64_t>((*block)[0].get<std::uint64_t>(), 65536));
    cols = static_cast<int>(std::min<std::uint64_t>((*block)[1].get<std::uint64_t>(), 65536));
  } else if (block->is_string()) {  // "128x128"
    const auto text = block->get<std::string>();
    const auto x = text.find('x');
    const auto number = [](const std::string& digits) {
      const bool fits = !digits.empty() && digits.size() <= 5 &&
                        std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; });
      return fits ? std::stoi(digits) : 0;
    };
    if (x != std::string::npos) {
      rows = number(text.substr(0, x));
      cols = number(text.substr(x + 1));
    }
  }
  if (rows < 1 || cols < 1) weights.refuse("block_structure", "the rows and columns of a block are expected");
  scheme.block_rows = rows;
  scheme.block_cols = cols;
}

// One of config_groups; a preset ("W4A16": ["Linear"]) names only its targets.
void read_group(RuleList& rules, QuantizationConfig& out, const Fields& groups, const std::string& name) {
  const Json& value = groups.json()[name];
  QuantScheme scheme = {.field = groups.name_of(name)};
  if (value.is_array()) {
    for (const std::string& target : groups.texts(name)) rules.add_target(target, scheme);
    return;
  }
  const Fields group(groups.origin(), scheme.field, value);
  std::string format = group.text("format");
  require_known_format(group, format);
  if (format.empty()) format = out.title;
  if (group.find("weights") == nullptr) return;  // it describes activations alone
  const Fields weights = group.object("weights");
  scheme.coding = coding_of(group, weights, format);
  if (scheme.coding == WeightCoding::integers) {
    scheme.bits = weights.number("num_bits");
    const std::string strategy = weights.text("strategy");
    if (strategy == "group") scheme.group = weights.number("group_size");
    if (strategy == "channel" || strategy == "tensor") scheme.group = -1;
  }
  read_block_structure(scheme, weights);
  for (const std::string& target : group.texts("targets")) rules.add_target(target, scheme);
  if (group.find("input_activations") == nullptr) return;
  const Fields inputs = group.object("input_activations");
  const std::string note =
      activation_note(out.origin, fmt::format("{}-bit {}", inputs.number("num_bits"),
                                              inputs.text("type") == "float" ? "floats" : "integers"));
  if (std::ranges::find(out.notes, note) == out.notes.end()) out.notes.push_back(note);
}

void refuse_transformed(const Fields& fields) {
  if (const Json* sparsity = fields.find("sparsity_config"); sparsity != nullptr && sparsity->is_object()) {
    const Fields inner = fields.object("sparsity_config");
    const std::string format = inner.text("format");
    if (!format.empty() && format != "dense") inner.refuse("format", "sparse weights are not read");
  }
  if (const Json* transform = fields.find("transform_config");
      transform != nullptr && !(transform->is_object() && transform->empty())) {
    fields.refuse("transform_config",
                  "it rotates activations while the model runs, which Inferno does not do");
  }
  const std::string status = fields.text("quantization_status");
  if (!status.empty() && status != "compressed") {
    fields.refuse("quantization_status",
                  "its weights are not packed; only \"compressed\" checkpoints are read");
  }
}

void read_compressed(QuantizationConfig& out, const Fields& fields) {
  refuse_transformed(fields);
  const std::string format = fields.text("format");
  require_known_format(fields, format);
  out.method = QuantMethod::compressed_tensors;
  out.title = format;
  RuleList rules(out, fields);
  for (const std::string& text : fields.texts("ignore")) {
    rules.add_target(text, {.field = fields.name_of("ignore"), .is_left_out = true});
  }
  const auto first_target = static_cast<std::ptrdiff_t>(out.rules.size());
  if (fields.find("config_groups") != nullptr) {
    const Fields groups = fields.object("config_groups");
    for (const auto& [name, value] : groups.json().items()) read_group(rules, out, groups, name);
  }
  // The most specific rule wins, whatever the order.
  const auto vagueness = [](const Rule& rule) {
    return rule.match == Rule::Match::whole_name ? 0 : rule.match == Rule::Match::pattern ? 1 : 2;
  };
  std::ranges::stable_sort(out.rules.begin() + first_target, out.rules.end(), {}, vagueness);
  if (fields.find("kv_cache_scheme") != nullptr) out.notes.push_back(cache_note(out.origin));
  out.title = "compressed-tensors" + (format.empty() ? "" : " " + format);
}

// -- modelopt and bitsandbytes --

void read_modelopt(QuantizationConfig& out, const Fields& fields) {
  const std::string algorithm = fields.text("quant_algo");
  const bool fp8 = algorithm == "FP8" || algorithm == "FP8_PER_CHANNEL_PER_TOKEN" || algorithm == "FP8_PB_WO";
  const bool nvfp4 = algorithm == "NVFP4" || algorithm == "W4A16_NVFP4";
  if (algorithm.ends_with("_AWQ")) {
    fields.refuse("quant_algo", "it multiplies inputs by pre_quant_scale, which Inferno does not do");
  }
  if (!fp8 && !nvfp4) {
    fields.refuse("quant_algo",
                  "of modelopt's algorithms FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4 and "
                  "W4A16_NVFP4 are read");
  }
  out.method = QuantMethod::modelopt;
  out.title = "modelopt " + algorithm;
  RuleList rules(out, fields);
  for (const char* field : {"ignore", "exclude_modules"}) rules.leave_out(field, true);
  rules.add(Rule::Match::linear, {},
            {.field = fields.name_of("quant_algo"), .coding = fp8 ? WeightCoding::fp8 : WeightCoding::nvfp4});
  if (algorithm != "W4A16_NVFP4" && algorithm != "FP8_PB_WO") {
    out.notes.push_back(activation_note(out.origin, fp8 ? "FP8" : "NVFP4"));
  }
  if (fields.find("kv_cache_scheme") != nullptr || fields.find("kv_cache_quant_algo") != nullptr) {
    out.notes.push_back(cache_note(out.origin));
  }
}

void read_bitsandbytes(QuantizationConfig& out, const Fields& fields) {
  const bool eight = fields.is_true("load_in_8bit") || fields.is_true("_load_in_8bit");
  out.method = QuantMethod::bitsandbytes;
  out.title = eight ? "bitsandbytes int8" : "bitsandbytes " + fields.text("bnb_4bit_quant_type");
  RuleList rules(out, fields);
  rules.leave_out("llm_int8_skip_modules", false);
  rules.add(Rule::Match::linear, {},
            {.field = fields.name_of(eight ? "load_in_8bit" : "load_in_4bit"),
             .coding = eight ? WeightCoding::integers : WeightCoding::table4,
             .bits = eight ? 8 : 4});
  if (eight) out.notes.push_back(activation_note(out.origin, "int8"));
}

// -- which file, which method --

struct Description {
  std::string origin, path;
  Json value;
};

Json parse_checked(std::string_view text, const std::string& origin) {
  (void)parse_config(text, origin);  // limits depth and size, and names what is wrong
  return Json::parse(text);
}

Json parse_checked(const fs::path& file) {
  return parse_checked(read_file(file, max_file), file.string());
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::optional<Description> find_description(const fs::path& directory) {
  const fs::path config = directory / "config.json";
  Json whole = parse_checked(config);
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto found = whole.find(key);
    if (found == whole.end() || found->is_null()) continue;
    return Description{config.string(), key, std::move(*found)};
  }
  if (const fs::path file = directory / "hf_quant_config.json"; is_file(file)) {
    Json value = parse_checked(file);
    if (!value.contains("quantization") || !value["quantization"].is_object()) return std::nullopt;
    Json inner = value["quantization"];
    if (!inner.contains("quant_algo") || inner["quant_algo"].is_null()) return std::nullopt;
    inner["quant_method"] = "modelopt";
    return Description{file.string(), "quantization", std::move(inner)};
  }
  for (const auto& [name, method] :
       {std::pair{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}) {
    const fs::path file = directory / name;
    if (!is_file(file)) continue;
    Json value = parse_checked(file);
    if (!value.contains("quant_method")) value["quant_method"] = method;
    return Description{file.string(), "", std::move(value)};
  }
  return std::nullopt;
}

// modelopt writes its settings twice.
void compare_with_second_file(const fs::path& directory, const Fields& fields) {
  const fs::path file = directory / "hf_quant_config.json";
  if (!is_file(file) || fields.origin() == file.string()) return;
  const Json second = parse_checked(file);
  if (!second.contains("quantization") || !second["quantization"].is_object()) return;
  const Fields inner(file.string(), "quantization", second["quantization"]);
  const std::string one = fields.text("quant_algo"), other = inner.text("quant_algo");
  if (fields.text("quant_method") == "modelopt" && (one == other || other.empty())) return;
  fail(ErrorKind::corrupt,
       fmt::format("{}: {} is {}, but {}: {} is {}", fields.origin(),
                   quote(fields.name_of(one.empty() ? "quant_method" : "quant_algo")),
                   quote(one.empty() ? fields.text("quant_method") : one), file.string(),
                   quote(inner.name_of("quant_algo")), quote(other)),
       {.why = "the two files describe the same weights", .next = "download the model again"});
}

using Read = void (*)(QuantizationConfig&, const Fields&);
constexpr std::array<std::pair<std::string_view, Read>, 9> readers = {
    {{"gptq", read_gptq},
     {"awq", read_awq},
     {"auto-round", read_auto_round},
     {"fp8", read_fp8},
     {"fbgemm_fp8", read_fbgemm},
     {"mxfp8", read_mxfp8},
     {"compressed-tensors", read_compressed},
     {"modelopt", read_modelopt},
     {"bitsandbytes", read_bitsandbytes}}};

std::string method_of(const Fields& fields) {
  std::string method = fields.text("quant_method");
  if (method.empty() && (fields.is_true("load_in_4bit") || fields.is_true("load_in_8bit"))) {
    method = "bitsandbytes";
  }
  if (method.empty() && fields.find("config_groups") != nullptr) method = "compressed-tensors";
  if (method == "modelopt_fp4") method = "modelopt";
  return method;
}

QuantizationConfig make_config(const Fields& fields) {
  QuantizationConfig out;
  out.origin = fields.origin();
  const std::string method = method_of(fields);
  if (method == "mxfp4") {
    out.method = QuantMethod::mxfp4;
    out.title = "MXFP4";
    return out;
  }
  const auto reader = std::ranges::find(readers, method, [](const auto& one) { return one.first; });
  if (reader == readers.end()) refuse_method(out.origin, fields.name_of("quant_method"), method);
  reader->second(out, fields);
  return out;
}

}  // namespace

std::optional<QuantScheme> QuantizationConfig::scheme_of(std::string_view module) const {
  for (const Rule& rule : rules) {
    if (rule.matches(module)) return rule.scheme;
  }
  return std::nullopt;
}

std::optional<QuantizationConfig> read_quantization_config(const fs::path& directory, const Config& config) {
  for (const std::string& key : config.unread()) {
    if (key.starts_with("quantization_config") || key.starts_with("compression_config")) config.ignore(key);
  }
  const std::optional<Description> found = find_description(directory);
  if (!found) return std::nullopt;
  const Fields fields(found->origin, found->path, found->value);
  compare_with_second_file(directory, fields);
  return make_config(fields);
}

QuantizationConfig parse_quantization_config(std::string_view json, const std::string& origin) {
  const Json value = parse_checked(json, origin);
  return make_config(Fields(origin, "", value));
}

}  // namespace inferno
