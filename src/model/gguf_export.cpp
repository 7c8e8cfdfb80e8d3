#include "model/gguf_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "model/load.h"
#include "model/outgoing_weights.h"
#include "model/rope.h"
#include "tensor/quantize.h"

namespace inferno {
namespace {

void require_writable(WeightFormat format) {
  if (can_quantize(format)) return;
  std::vector<std::string_view> known;
  for (const WeightFormat one : all_formats) {
    if (can_quantize(one)) known.push_back(name_of(one));
  }
  fail(ErrorKind::invalid_request, fmt::format("cannot convert weights to {}", name_of(format)),
       {.why = "that type is only read", .next = fmt::format("choose one of: {}", fmt::join(known, ", "))});
}

class Exporter {
 public:
  Exporter(const ModelSpec& spec, std::string_view architecture, const ExportOptions& options,
           ThreadPool& pool)
      : spec_(spec),
        architecture_(architecture),
        target_(architecture_named(architecture)),
        options_(options),
        pool_(pool) {}

  void add(const PlannedSlot& planned) {
    const auto slot = std::make_shared<const PlannedSlot>(planned);
    const SlotRequest& request = slot->request;
    const std::vector<std::string> names = names_of(*slot);
    const bool split = names.size() > slot->parts.size();
    int first = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t part = split ? 0 : i;
      const int rows = split ? request.parts[i] : slot->parts[part].rows;
      OutgoingWeight weight = {.name = names[i] + ".weight",
                               .slot = slot,
                               .part = part,
                               .first_row = split ? first : 0,
                               .rows = rows,
                               .bias_column = first,
                               .rotary_heads = rotary_heads(request, i, names.size()),
                               .format = WeightFormat::f32};
      weight.format = format_of(weight);
      tensors_.push_back(outgoing_weight(weight, pool_));
      weight.name = names[i] + ".bias";
      if (!slot->parts[part].biases.empty()) tensors_.push_back(outgoing_bias(weight));
      first += rows;
    }
  }

  std::vector<OutgoingTensor> tensors() { return std::move(tensors_); }
  std::vector<std::string> notes() const {
    std::vector<std::string> out;
    for (const auto& [reason, names] : fallbacks_) {
      out.push_back(fmt::format("{}: {} tensor{}, the first {}", reason, names.size(),
                                names.size() == 1 ? "" : "s", names.front()));
    }
    return out;
  }

 private:
  static const Architecture& architecture_named(std::string_view name) {
    const auto& all = architectures();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Architecture& arch) {
      return std::find(arch.gguf_types.begin(), arch.gguf_types.end(), name) != arch.gguf_types.end();
    });
    expects(found != all.end(), "an exported architecture can be loaded");
    return *found;
  }

  // As many names as the slot has parts, or else one for each of the decoder's parts.
  std::vector<std::string> names_of(const PlannedSlot& slot) const {
    std::vector<NameChoice> choices = names_for(slot.request, target_, Container::gguf);
    std::erase_if(choices,
                  [](const NameChoice& c) { return c.tensors.front().find("{e}") != std::string::npos; });
    expects(!choices.empty(), "a GGUF file has a name for every slot");
    // llama.cpp calls this norm after what precedes it in gpt-oss alone.
    if (slot.request.slot == Slot::mlp_norm && architecture_ == "gpt-oss") return choices.back().tensors;
    const auto fits = [&](const NameChoice& c) { return c.tensors.size() == slot.parts.size(); };
    const auto found = std::find_if(choices.begin(), choices.end(), fits);
    return found == choices.end() ? choices.front().tensors : found->tensors;
  }

  int rotary_heads(const SlotRequest& request, std::size_t index, std::size_t count) const {
    const bool rotated = request.slot == Slot::qkv && count == 3 && index < 2;
    if (!rotated || target_.gguf_rows != GgufRows::rotary_neighbours) return 0;
    const AttentionSpec& attention = spec_.blocks[static_cast<std::size_t>(request.layer)].attention;
    return index == 0 ? attention.heads : attention.kv_heads;
  }

  WeightFormat format_of(const OutgoingWeight& weight) {
    const SlotRequest& request = weight.slot->request;
    const WeightFormat stored = weight.slot->parts[weight.part].tensors.front().format;
    if (request.is_vector || request.slot == Slot::router || request.slot == Slot::positions) {
      return WeightFormat::f32;
    }
    WeightFormat wanted = options_.type;
    if (request.experts > 0) {
      if (!options_.experts && stored == WeightFormat::mxfp4) return stored;
      wanted = options_.experts.value_or(wanted);
    }
    if (wanted == stored) return wanted;
    require_writable(wanted);
    WeightFormat fitting = wanted;
    if (request.cols % block_elements(fitting) != 0) fitting = WeightFormat::q8_0;
    if (request.cols % block_elements(fitting) != 0) fitting = WeightFormat::f16;
    if (fitting != wanted) {
      fallbacks_[fmt::format("rows of {} columns are not whole blocks of {}, stored as {}", request.cols,
                             name_of(wanted), name_of(fitting))]
          .push_back(weight.name);
    }
    return fitting;
  }

  const ModelSpec& spec_;
  std::string_view architecture_;
  const Architecture& target_;
  const ExportOptions& options_;
  ThreadPool& pool_;
  std::vector<OutgoingTensor> tensors_;
  std::map<std::string, std::vector<std::string>> fallbacks_;
};

TensorPlan fitting_tensors(const ModelPlan& plan, const Checkpoint& checkpoint) {
  TensorPlan tensors = plan_tensors(plan.spec, *plan.architecture, checkpoint);
  for (const std::string& name : unused_tensors(tensors, plan.spec, checkpoint)) {
    tensors.problems.push_back(name + ": nothing in this architecture uses it");
  }
  if (tensors.problems.empty()) return tensors;
  fail(ErrorKind::corrupt,
       fmt::format("{}: {}", checkpoint.config().origin(), fmt::join(tensors.problems, "\n  ")),
       {.why = "the tensors do not fit what the configuration describes", .next = "fetch the model again"});
}

OutgoingTensor factor_tensor(std::string name, const std::vector<float>& factors) {
  return {.name = std::move(name),
          .format = WeightFormat::f32,
          .shape = {static_cast<std::int64_t>(factors.size())},
          .write = [factors](const ByteSink& sink) { sink(std::as_bytes(std::span(factors))); }};
}

}  // namespace

std::vector<OutgoingTensor> rope_tensors(const ModelSpec& spec) {
  const auto* rope = std::get_if<Rope>(&spec.positions);
  if (rope == nullptr) return {};
  if (const auto* scaling = std::get_if<LongRopeScaling>(&rope->scaling)) {
    std::vector<OutgoingTensor> out;
    out.push_back(factor_tensor("rope_factors_long.weight", scaling->long_factors));
    out.push_back(factor_tensor("rope_factors_short.weight", scaling->short_factors));
    return out;
  }
  if (!std::holds_alternative<Llama3Scaling>(rope->scaling)) return {};
  // Llama 3's scaling is stored as its result: what each frequency is divided by.
  const Rope plain = {.theta = rope->theta, .dims = rope->dims, .scaling = NoScaling{}};
  const std::vector<double> scaled = rope_frequencies(*rope, spec.context).inverse;
  const std::vector<double> unscaled = rope_frequencies(plain, spec.context).inverse;
  std::vector<float> factors;
  for (std::size_t i = 0; i < scaled.size(); ++i)
    factors.push_back(static_cast<float>(unscaled[i] / scaled[i]));
  std::vector<OutgoingTensor> out;
  out.push_back(factor_tensor("rope_freqs.weight", factors));
  return out;
}

GgufExport export_gguf(const Checkpoint& checkpoint, const ExportOptions& options, ThreadPool& pool) {
  const std::string& origin = checkpoint.config().origin();
  if (checkpoint.container() == Container::gguf) {
    fail(ErrorKind::unsupported, fmt::format("{}: this is a GGUF file already", origin),
         {.why = "weights are converted once, from what the makers published: a second rounding adds to the "
                 "first",
          .next = "name the model's directory with config.json and safetensors files"});
  }
  require_writable(options.type);
  ModelPlan plan = describe_model(checkpoint);
  const TensorPlan tensors = fitting_tensors(plan, checkpoint);
  const std::string_view architecture = gguf_architecture(checkpoint);
  GgufExport out = {.file = {}, .spec = std::move(plan.spec), .notes = std::move(plan.notes)};
  Exporter exporter(out.spec, architecture, options, pool);
  for (const PlannedSlot& slot : tensors.slots) exporter.add(slot);
  out.file.tensors = rope_tensors(out.spec);
  std::ranges::move(exporter.tensors(), std::back_inserter(out.file.tensors));
  std::ranges::move(exporter.notes(), std::back_inserter(out.notes));
  out.file.keys = {{"general.architecture", std::string(architecture)},
                   {"general.type", std::string("model")},
                   {"general.file_type", gguf_file_type(out.file, options)},
                   {"general.quantization_version", std::uint32_t{2}}};
  std::ranges::move(architecture_keys(out.spec, checkpoint.config(), architecture),
                    std::back_inserter(out.file.keys));
  require_same_model(out.file, out.spec, origin);
  return out;
}

}  // namespace inferno
