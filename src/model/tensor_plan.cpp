#include "model/tensor_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace inferno {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// Finds the tensors of one slot and says what is wrong with them.
class Planner {
 public:
  Planner(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint)
      : spec_(spec), arch_(arch), checkpoint_(checkpoint) {
    const std::vector<std::string> names = checkpoint.names();
    drop_prefix_ = checkpoint.container() == Container::safetensors &&
                   std::none_of(names.begin(), names.end(),
                                [&](const std::string& name) { return name.starts_with(arch.prefix); });
  }

  TensorPlan run() {
    for (const SlotRequest& request : slot_requests(spec_)) plan_.slots.push_back(plan_slot(request));
    return std::move(plan_);
  }

 private:
  std::string stored_name(const std::string& name) const {
    return drop_prefix_ && name.starts_with(arch_.prefix) ? name.substr(arch_.prefix.size()) : name;
  }

  std::optional<StoredTensor> find(const std::string& name) {
    auto found = checkpoint_.find(name);
    if (found) plan_.used.insert(name);
    return found;
  }

  // "x.weight", or plain "x" (sinks, stacked experts).
  std::optional<StoredTensor> find_weight(const std::string& name, std::string& found_as) {
    for (const char* ending : {".weight", ""}) {
      found_as = stored_name(name) + ending;
      if (auto found = find(found_as)) return found;
    }
    found_as = stored_name(name) + ".weight";
    return std::nullopt;
  }

  std::optional<StoredTensor> find_bias(const std::string& name, std::string& found_as) {
    for (const char* ending : {".bias", "_bias"}) {
      found_as = stored_name(name) + ending;
      if (auto found = find(found_as)) return found;
    }
    return std::nullopt;
  }

  bool exists(const NameChoice& choice) const {
    return std::all_of(choice.tensors.begin(), choice.tensors.end(), [&](const std::string& name) {
      const std::string first = stored_name(for_expert(name, 0));
      return checkpoint_.find(first + ".weight") || checkpoint_.find(first);
    });
  }

  PlannedSlot plan_slot(const SlotRequest& request) {
    std::vector<NameChoice> choices = names_for(request, arch_, checkpoint_.container());
    if (request.slot == Slot::embedding && spec_.tied_head) {
      // Of two names for one matrix, some exporters keep only the head's.
      const std::vector<NameChoice> head =
          names_for({.slot = Slot::head, .parts = {}}, arch_, checkpoint_.container());
      choices.insert(choices.end(), head.begin(), head.end());
    }
    PlannedSlot slot = {.request = request, .parts = {}};
    if (choices.empty()) {
      problem("layer {}: files of this kind have no name for {}", request.layer, name_of(request.slot));
      return slot;
    }
    const auto chosen =
        std::find_if(choices.begin(), choices.end(), [&](const NameChoice& c) { return exists(c); });
    const NameChoice& choice = chosen == choices.end() ? choices.front() : *chosen;
    const bool fused = choice.tensors.size() == 1;
    const int all_rows = std::accumulate(request.parts.begin(), request.parts.end(), 0);
    for (std::size_t i = 0; i < choice.tensors.size(); ++i) {
      PlannedPart part;
      part.rows = fused ? all_rows : request.parts[i];
      part.experts = request.experts;
      part.interleaved = choice.interleaved;
      fill(part, request, choice, i);
      slot.parts.push_back(std::move(part));
    }
    return slot;
  }

  void fill(PlannedPart& part, const SlotRequest& request, const NameChoice& choice, std::size_t index) {
    const std::string& name = choice.tensors[index];
    const bool apart = name.find("{e}") != std::string::npos;
    const int tensors = apart ? request.experts : 1;
    for (int expert = 0; expert < tensors; ++expert) {
      const std::string one = for_expert(name, expert);
      std::string found_as;
      const auto weight = find_weight(one, found_as);
      if (!weight) {
        problem("{}: missing ({})", found_as, name_of(request.slot));
        return;
      }
      part.names.push_back(found_as);
      part.transposed = choice.layout == Layout::in_out && block_elements(weight->format) == 1;
      check_shape(found_as, *weight, part, request, apart);
      part.tensors.push_back(*weight);
      if (request.bias) plan_bias(part, request, one, apart);
    }
    const auto other_format = [&](const StoredTensor& t) { return t.format != part.tensors.front().format; };
    if (std::any_of(part.tensors.begin(), part.tensors.end(), other_format)) {
      problem("{}: the experts of one layer are stored in different formats", part.names.front());
    }
    const bool rotated = request.slot == Slot::qkv && index < 2 && choice.tensors.size() == 3;
    if (rotated && checkpoint_.container() == Container::gguf &&
        arch_.gguf_rows == GgufRows::rotary_neighbours) {
      const AttentionSpec& a = spec_.blocks[static_cast<std::size_t>(request.layer)].attention;
      part.rotary_heads = index == 0 ? a.heads : a.kv_heads;
    }
  }

  void plan_bias(PlannedPart& part, const SlotRequest& request, const std::string& name, bool apart) {
    std::string found_as;
    const auto bias = find_bias(name, found_as);
    if (!bias) {
      problem("{}.bias: missing ({})", stored_name(name), name_of(request.slot));
      return;
    }
    const std::int64_t size = request.is_vector ? request.cols : part.rows;
    std::vector<std::int64_t> expected = {size};
    if (part.experts > 0 && !apart) expected.insert(expected.begin(), part.experts);
    if (bias->shape != expected) wrong_shape(stored_name(name) + ".bias", *bias, expected);
    part.biases.push_back(*bias);
    part.bias_names.push_back(found_as);
  }

  void check_shape(const std::string& name, const StoredTensor& tensor, const PlannedPart& part,
                   const SlotRequest& request, bool apart) {
    std::vector<std::int64_t> expected = {part.rows, request.cols};
    if (part.transposed) std::swap(expected[0], expected[1]);
    if (request.is_vector) expected = {request.cols};
    if (part.experts > 0 && !apart) expected.insert(expected.begin(), part.experts);
    if (tensor.shape != expected) return wrong_shape(name, tensor, expected);
    const int block = block_elements(tensor.format);
    if (request.cols % block != 0) {
      problem("{}: rows of {} columns are not whole blocks of {} elements ({})", name, request.cols, block,
              inferno::name_of(tensor.format));
    }
  }

  void wrong_shape(const std::string& name, const StoredTensor& tensor,
                   const std::vector<std::int64_t>& expected) {
    problem("{}: expected [{}], found [{}]", name, fmt::join(expected, ", "), fmt::join(tensor.shape, ", "));
  }

  template <class... Args>
  void problem(fmt::format_string<Args...> text, Args&&... args) {
    plan_.problems.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  const ModelSpec& spec_;
  const Architecture& arch_;
  const Checkpoint& checkpoint_;
  bool drop_prefix_ = false;
  TensorPlan plan_;
};

}  // namespace

TensorPlan plan_tensors(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint) {
  return Planner(spec, arch, checkpoint).run();
}

std::vector<std::string> unused_tensors(const TensorPlan& plan, const ModelSpec& spec,
                                        const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const std::string& name : checkpoint.names()) {
    if (plan.used.contains(name)) continue;
    // Attention masks and frequencies that old exporters saved; GGUF's frequency factors are read as config.
    if (ends_with_any(name, {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", "rope_freqs.weight",
                             "rope_factors_long.weight", "rope_factors_short.weight"})) {
      continue;
    }
    if (spec.tied_head && (name == "lm_head.weight" || name == "output.weight")) continue;
    out.push_back(name);
  }
  return out;
}

}  // namespace inferno
