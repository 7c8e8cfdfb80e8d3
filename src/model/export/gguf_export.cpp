#include "model/export/gguf_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "base/error.h"
#include "checkpoint/gguf/open_gguf.h"
#include "model/architecture.h"
#include "model/export/outgoing_weights.h"
#include "model/load.h"
#include "model/rope.h"
#include "model/tensor_plan.h"
#include "tensor/quantize.h"

namespace inferno {
namespace {

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
    for (const auto& [reason, names] : notes_) {
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
    const TypeChoice choice = choose_type(weight.slot->request, weight.slot->parts[weight.part], options_);
    if (!choice.note.empty()) notes_[choice.note].push_back(weight.name);
    return choice.format;
  }

  const ModelSpec& spec_;
  std::string_view architecture_;
  const Architecture& target_;
  const ExportOptions& options_;
  ThreadPool& pool_;
  std::vector<OutgoingTensor> tensors_;
  std::map<std::string, std::vector<std::string>> notes_;  // by sentence, the tensors it is about
};

OutgoingTensor factor_tensor(std::string name, const std::vector<float>& factors) {
  return {.name = std::move(name),
          .format = WeightFormat::f32,
          .shape = {static_cast<std::int64_t>(factors.size())},
          .write = [factors](const ByteSink& sink) { sink(std::as_bytes(std::span(factors))); }};
}

class Keys {
 public:
  explicit Keys(std::string_view architecture) : architecture_(architecture) {}
  void whole(std::string_view name, int value) { add(name, static_cast<std::uint32_t>(value)); }
  void add(std::string_view name, GgufKeyValue value) {
    keys_.emplace_back(fmt::format("{}.{}", architecture_, name), std::move(value));
  }
  GgufKeys take() { return std::move(keys_); }

 private:
  std::string_view architecture_;
  GgufKeys keys_;
};

// The size of the dense MLP. A config may name it even if every layer has experts.
int dense_hidden(const ModelSpec& spec, const Config& config) {
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) return dense->hidden;
  }
  return config.positive("intermediate_size", std::get<MoeMlp>(spec.blocks.front().mlp).hidden);
}

void add_experts(Keys& keys, const ModelSpec& spec, std::string_view architecture) {
  const auto has_experts = [](const BlockSpec& block) { return std::holds_alternative<MoeMlp>(block.mlp); };
  const auto found = std::find_if(spec.blocks.begin(), spec.blocks.end(), has_experts);
  if (found == spec.blocks.end()) return;
  const auto& moe = std::get<MoeMlp>(found->mlp);
  keys.whole("expert_count", moe.experts);
  keys.whole("expert_used_count", moe.active);
  if (architecture == "qwen3moe" || architecture == "gpt-oss") {
    keys.whole("expert_feed_forward_length", moe.hidden);
  }
  if (architecture == "qwen3moe" && !moe.renormalize) keys.add("expert_weights_norm", false);
}

struct AddScaling {
  Keys& keys;

  void operator()(const NoScaling&) const {}
  void operator()(const Llama3Scaling&) const {}  // a tensor
  void operator()(const FactorScaling&) const {}  // a tensor
  void operator()(const LinearScaling& scaling) const {
    keys.add("rope.scaling.type", std::string("linear"));
    keys.add("rope.scaling.factor", scaling.factor);
  }
  void operator()(const YarnScaling& scaling) const {
    keys.add("rope.scaling.type", std::string("yarn"));
    keys.add("rope.scaling.factor", scaling.factor);
    keys.whole("rope.scaling.original_context_length", scaling.original_context);
    if (scaling.beta_fast != 32.0f) keys.add("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    if (scaling.beta_slow != 1.0f) keys.add("rope.scaling.yarn_beta_slow", scaling.beta_slow);
    // No key is written for an unusual attention factor, because readers disagree about its meaning. The
    // comparison with the original then refuses such a model.
  }
  void operator()(const LongRopeScaling& scaling) const {
    keys.whole("rope.scaling.original_context_length", scaling.original_context);
    keys.add("rope.scaling.attn_factor", scaling.long_attention_factor);
  }
};

void add_positions(Keys& keys, const ModelSpec& spec) {
  const auto* rope = std::get_if<Rope>(&spec.positions);
  if (rope == nullptr) return;
  keys.add("rope.freq_base", rope->theta);
  keys.whole("rope.dimension_count", rope->dims);
  std::visit(AddScaling{keys}, rope->scaling);
}

void add_multipliers(Keys& keys, const ModelSpec& spec, const Config& config) {
  keys.add("embedding_scale", spec.embedding_scale);
  keys.add("residual_scale", spec.residual_scale);
  keys.add("attention.scale", spec.blocks.front().attention.scale);
  keys.add("logit_scale", config.number("logits_scaling", 1.0f));
}

// The file before it exists: its header, and the bytes of small tensors. Weights read as zeros.
class Preview final : public ByteSource {
 public:
  explicit Preview(const OutgoingGguf& file) : bytes_(gguf_header(file)) {
    const std::vector<std::uint64_t> offsets = gguf_offsets(file);
    size_ = bytes_.size() + offsets.back();
    // Tensors of factors come first, and a loader reads nothing else.
    for (std::size_t i = 0; i < file.tensors.size() && file.tensors[i].name.starts_with("rope_f"); ++i) {
      file.tensors[i].write(
          [&](std::span<const std::byte> piece) { bytes_.insert(bytes_.end(), piece.begin(), piece.end()); });
      bytes_.resize(bytes_.size() + (offsets[i + 1] - offsets[i] - file.tensors[i].bytes()));
    }
  }

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    expects(offset <= size_ && to.size() <= size_ - offset, "a preview is read within its bounds");
    const std::size_t there = offset < bytes_.size() ? std::min(to.size(), bytes_.size() - offset) : 0;
    if (there > 0) std::memcpy(to.data(), bytes_.data() + offset, there);
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(there), to.end(), std::byte{0});
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t size_ = 0;
};

// Factors are stored as floats, so the last places of a frequency may differ.
bool nearly(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool same_angles(const Rope& a, const Rope& b, int context) {
  const RopeFrequencies left = rope_frequencies(a, context), right = rope_frequencies(b, context);
  return nearly(left.attention_factor, right.attention_factor) &&
         std::equal(left.inverse.begin(), left.inverse.end(), right.inverse.begin(), right.inverse.end(),
                    nearly);
}

bool same_positions(const Positions& a, const Positions& b, int context) {
  if (a.index() != b.index()) return false;
  const auto* left = std::get_if<Rope>(&a);
  const auto* right = std::get_if<Rope>(&b);
  if (left == nullptr) return std::get<LearnedPositions>(a).count == std::get<LearnedPositions>(b).count;
  // LongRoPE has one set of factors for short contexts and one for long ones.
  return left->dims == right->dims && same_angles(*left, *right, 1) && same_angles(*left, *right, context);
}

std::vector<std::string> differences(const ModelSpec& a, const ModelSpec& b) {
  std::vector<std::string> out;
  const auto compare = [&](bool same, std::string_view what) {
    if (!same) out.emplace_back(what);
  };
  compare(a.vocab == b.vocab, "the size of the vocabulary");
  compare(a.width == b.width && a.blocks.size() == b.blocks.size(), "width or number of layers");
  compare(a.context == b.context, "the length of the context");
  compare(a.norm == b.norm && a.norm_epsilon == b.norm_epsilon, "the norms");
  compare(same_positions(a.positions, b.positions, a.context), "rotary positions and their scaling");
  compare(a.embedding_scale == b.embedding_scale && a.residual_scale == b.residual_scale &&
              a.logit_scale == b.logit_scale,
          "the multipliers");
  compare(a.tied_head == b.tied_head && a.head_bias == b.head_bias, "the head");
  for (std::size_t layer = 0; layer < std::min(a.blocks.size(), b.blocks.size()); ++layer) {
    const BlockSpec &left = a.blocks[layer], &right = b.blocks[layer];
    compare(left.attention.window == right.attention.window, fmt::format("the window of layer {}", layer));
    AttentionSpec attention = left.attention;
    attention.window = right.attention.window;
    compare(attention == right.attention, fmt::format("the attention of layer {}", layer));
    compare(left.mlp == right.mlp && left.parallel == right.parallel,
            fmt::format("the MLP of layer {}", layer));
  }
  return out;
}

// Divisors of the rotary frequencies, for scalings that a GGUF file stores as tensors.
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

// "general.architecture" for a checkpoint of that family.
std::string_view gguf_architecture(const Checkpoint& checkpoint) {
  // llama.cpp has one name for these three.
  const std::string_view type = checkpoint.architecture();
  if (type == "mistral" || type == "mixtral") return "llama";
  const Architecture& arch = architecture_for(checkpoint);
  expects(!arch.gguf_types.empty(), "a family has a name in GGUF files");
  return arch.gguf_types.front();
}

// The keys under "{architecture}.": the inverse of checkpoint/gguf/config.cpp and rope.cpp.
GgufKeys architecture_keys(const ModelSpec& spec, const Config& config, std::string_view architecture) {
  Keys keys(architecture);
  const AttentionSpec& attention = spec.blocks.front().attention;
  const bool learned = std::holds_alternative<LearnedPositions>(spec.positions);
  keys.whole("vocab_size", spec.vocab);
  keys.whole("context_length", spec.context);
  keys.whole("embedding_length", spec.width);
  keys.whole("block_count", static_cast<int>(spec.blocks.size()));
  keys.whole("feed_forward_length", dense_hidden(spec, config));
  keys.whole("attention.head_count", attention.heads);
  if (!learned) keys.whole("attention.head_count_kv", attention.kv_heads);
  if (attention.head_dim * attention.heads != spec.width || config.has("head_dim")) {
    keys.whole("attention.key_length", attention.head_dim);
    keys.whole("attention.value_length", attention.head_dim);
  }
  keys.add(spec.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
           spec.norm_epsilon);
  const auto narrower = [](const BlockSpec& a, const BlockSpec& b) {
    return a.attention.window < b.attention.window;
  };
  const int window = std::max_element(spec.blocks.begin(), spec.blocks.end(), narrower)->attention.window;
  if (window > 0) keys.whole("attention.sliding_window", window);
  add_experts(keys, spec, architecture);
  add_positions(keys, spec);
  if (architecture.starts_with("granite")) add_multipliers(keys, spec, config);
  return keys.take();
}

// llama.cpp's number for "general.file_type".
std::uint32_t gguf_file_type(const OutgoingGguf& file, const ExportOptions& options) {
  const bool mxfp4 = std::any_of(file.tensors.begin(), file.tensors.end(), [](const OutgoingTensor& tensor) {
    return tensor.format == WeightFormat::mxfp4;
  });
  if (mxfp4) return 38;  // MOSTLY_MXFP4_MOE
  if (options.type == WeightFormat::f16) return 1;
  if (options.type == WeightFormat::q4_0) return 2;
  if (options.type == WeightFormat::q8_0) return 7;
  if (options.type == WeightFormat::q4_k) return 14;  // MOSTLY_Q4_K_S: without other types mixed in
  if (options.type == WeightFormat::q6_k) return 18;
  if (options.type == WeightFormat::bf16) return 32;
  return 0;  // ALL_F32
}

// Reads the keys and tensor names that are about to be written as a loader would. Error{unsupported} listing
// what a decoder made from them would do differently.
void require_same_model(const OutgoingGguf& file, const ModelSpec& original, std::string_view origin) {
  const std::string name = fmt::format("{} as GGUF", origin);
  const auto preview = open_gguf(std::make_shared<Preview>(file), name);
  const ModelDescription plan = describe_model(*preview);
  std::vector<std::string> problems = differences(original, plan.spec);
  if (problems.empty()) {
    const TensorPlan tensors = plan_tensors(plan.spec, *plan.architecture, *preview);
    expects(tensors.problems.empty(), fmt::format("the exported tensors are those a loader asks for: {}",
                                                  fmt::join(tensors.problems, ", ")));
  }
  if (problems.empty()) return;
  constexpr std::size_t max_shown = 6;
  const bool more = problems.size() > max_shown;
  if (more) problems.resize(max_shown);
  fail(ErrorKind::unsupported, fmt::format("{}: GGUF cannot represent this model", origin),
       {.why = fmt::format("GGUF has no keys for {}{}", fmt::join(problems, ", "), more ? ", …" : ""),
        .next = "use the model as it is: Inferno reads it without conversion"});
}

}  // namespace

GgufExport export_gguf(const Checkpoint& checkpoint, const ExportOptions& options, ThreadPool& pool) {
  const std::string& origin = checkpoint.config().origin();
  if (checkpoint.container() == Container::gguf) {
    fail(
        ErrorKind::unsupported, fmt::format("{}: already a GGUF file", origin),
        {.why = "weights are converted only from the published files, because rounding them twice adds error",
         .next = "pass the model's directory with config.json and safetensors files"});
  }
  require_writable(options.type);
  ModelDescription plan = describe_model(checkpoint);
  const TensorPlan tensors = plan_tensors(plan.spec, *plan.architecture, checkpoint);
  require_complete(tensors, checkpoint);
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
