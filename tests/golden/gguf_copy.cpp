#include "golden/gguf_copy.h"

#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include "support/gguf_writer.h"

namespace inferno::testing {
namespace {

struct Data {
  WeightFormat format;
  std::vector<std::int64_t> shape;  // outermost first
  std::vector<std::byte> bytes;
};

std::uint32_t ggml_type(WeightFormat format) {
  if (format == WeightFormat::f32) return 0;
  if (format == WeightFormat::f16) return 1;
  if (format == WeightFormat::bf16) return 30;
  if (format == WeightFormat::mxfp4) return 39;
  throw std::runtime_error("a format the copy does not write");
}

Data read(const Checkpoint& from, const std::string& name) {
  const auto tensor = from.find(name);
  if (!tensor) throw std::runtime_error("the original has no " + name);
  Data out = {tensor->format, tensor->shape, std::vector<std::byte>(tensor->bytes)};
  tensor->read(0, out.bytes);
  return out;
}

// llama.cpp's order for Llama's Q and K: within each head, row i of the first half, then row i of the second.
Data pair_neighbours(const Data& in, int heads) {
  Data out = in;
  const auto rows = static_cast<std::size_t>(in.shape[0]);
  const std::size_t row_bytes = in.bytes.size() / rows, head = rows / static_cast<std::size_t>(heads);
  std::size_t to = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
    for (std::size_t i = 0; i < head / 2; ++i) {
      for (const std::size_t half : {std::size_t{0}, head / 2}) {
        std::memcpy(&out.bytes[row_bytes * to++], &in.bytes[row_bytes * (h * head + half + i)], row_bytes);
      }
    }
  }
  return out;
}

// The HF tensor names of a layer after "model.layers.N.", and GGUF's after "blk.N.".
const std::map<std::string, std::string> layer_names = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.dense", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
};

class GgufCopy {
 public:
  GgufCopy(const Checkpoint& original, const GgufCopyOptions& options) : from_(original), options_(options) {
    const std::map<std::string, std::string> types = {
        {"mistral", "llama"}, {"mixtral", "llama"}, {"phi", "phi2"}, {"qwen3_moe", "qwen3moe"}};
    const std::string type(original.architecture());
    arch_ = types.contains(type) ? types.at(type) : type;
    permutes_ = arch_ == "llama" || arch_.starts_with("granite");
  }

  std::filesystem::path write(const std::filesystem::path& folder) {
    for (int layer = 0; layer < from_.config().integer("num_hidden_layers"); ++layer) add_layer(layer);
    add_plain("model.embed_tokens", "token_embd");
    add_plain(from_.find("model.norm.weight") ? "model.norm" : "model.final_layernorm", "output_norm");
    if (from_.find("lm_head.weight")) add_plain("lm_head", "output");
    add_rope();
    std::vector<GgufWriter> files;
    for (int i = 0; i < options_.files; ++i) files.emplace_back(options_.version);
    set_keys(files.front());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto& [name, data] = tensors_[i];
      std::vector<std::uint64_t> dimensions(data.shape.rbegin(), data.shape.rend());
      files[i % files.size()].tensor(name, ggml_type(data.format), dimensions, data.bytes);
    }
    if (files.size() > 1) {
      write_split_gguf(folder, "copy", files, tensors_.size());
      return folder / ("copy-00001-of-0000" + std::to_string(files.size()) + ".gguf");
    }
    files.front().write(folder / "copy.gguf");
    return folder / "copy.gguf";
  }

 private:
  void add(const std::string& name, Data data) { tensors_.emplace_back(name, std::move(data)); }

  void add_plain(const std::string& from, const std::string& to) {
    add(to + ".weight", read(from_, from + ".weight"));
    if (from_.find(from + ".bias")) add(to + ".bias", read(from_, from + ".bias"));
  }

  void add_layer(int layer) {
    const std::string source = "model.layers." + std::to_string(layer) + ".";
    const std::string target = "blk." + std::to_string(layer) + ".";
    for (const auto& [from, to] : layer_names) {
      for (const std::string ending : {".weight", ".bias"}) {
        if (!from_.find(source + from + ending)) continue;
        Data data = read(from_, source + from + ending);
        if (permutes_ && to == "attn_q")
          data = pair_neighbours(data, from_.config().integer("num_attention_heads"));
        if (permutes_ && to == "attn_k")
          data = pair_neighbours(data, from_.config().integer("num_key_value_heads"));
        add(target + to + ending, std::move(data));
      }
    }
    if (from_.find(source + "block_sparse_moe.input_linear.weight")) split_experts(source, target);
    stack_experts(source + "block_sparse_moe.experts.", {"w1", "w3", "w2"}, target);
    stack_experts(source + "mlp.experts.", {"gate_proj", "up_proj", "down_proj"}, target);
  }

  // One tensor for each expert becomes one tensor for all.
  void stack_experts(const std::string& prefix, const std::vector<std::string>& parts,
                     const std::string& target) {
    const std::vector<std::string> names = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (std::size_t part = 0; part < parts.size(); ++part) {
      Data all = {};
      std::int64_t expert = 0;
      for (; from_.find(prefix + std::to_string(expert) + "." + parts[part] + ".weight"); ++expert) {
        const Data one = read(from_, prefix + std::to_string(expert) + "." + parts[part] + ".weight");
        all.format = one.format;
        all.shape = one.shape;
        all.bytes.insert(all.bytes.end(), one.bytes.begin(), one.bytes.end());
      }
      if (expert == 0) continue;
      all.shape.insert(all.shape.begin(), expert);
      add(target + names[part] + ".weight", std::move(all));
    }
  }

  // Granite stacks gate over up in one tensor; GGUF keeps two.
  void split_experts(const std::string& source, const std::string& target) {
    const Data both = read(from_, source + "block_sparse_moe.input_linear.weight");
    const auto experts = static_cast<std::size_t>(both.shape[0]);
    const std::size_t half = both.bytes.size() / experts / 2;
    for (const std::size_t part : {std::size_t{0}, std::size_t{1}}) {
      Data one = {both.format, {both.shape[0], both.shape[1] / 2, both.shape[2]}, {}};
      for (std::size_t expert = 0; expert < experts; ++expert) {
        const auto begin = both.bytes.begin() + static_cast<std::ptrdiff_t>((2 * expert + part) * half);
        one.bytes.insert(one.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(half));
      }
      add(target + (part == 0 ? "ffn_gate_exps.weight" : "ffn_up_exps.weight"), std::move(one));
    }
  }

  // Llama 3's scaling is stored as one divisor for each frequency.
  void add_rope() {
    const Config& c = from_.config();
    if (c.text("rope_scaling.rope_type", "") != "llama3") return;
    const int head = c.integer("hidden_size") / c.integer("num_attention_heads");
    Data factors = {WeightFormat::f32, {head / 2}, {}};
    for (int i = 0; i < head / 2; ++i) {
      const double frequency = std::pow(c.number("rope_theta"), -2.0 * i / head);
      const double turns = c.number("rope_scaling.original_max_position_embeddings") * frequency /
                           (2.0 * 3.14159265358979323846);
      const double low = c.number("rope_scaling.low_freq_factor"),
                   high = c.number("rope_scaling.high_freq_factor");
      const double factor = c.number("rope_scaling.factor");
      const double blend = (turns - low) / (high - low);
      double divisor = 1.0;
      if (turns < low)
        divisor = factor;
      else if (turns <= high)
        divisor = 1.0 / ((1.0 - blend) / factor + blend);
      const auto value = static_cast<float>(divisor);
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      factors.bytes.insert(factors.bytes.end(), bytes, bytes + sizeof(value));
    }
    add("rope_freqs.weight", std::move(factors));
  }

  void set_keys(GgufWriter& file) const {
    const Config& c = from_.config();
    const auto whole = [&](const std::string& key, const std::string& from) {
      if (c.has(from)) file.set(arch_ + "." + key, static_cast<std::uint32_t>(c.integer(from)));
    };
    const auto real = [&](const std::string& key, const std::string& from) {
      if (c.has(from)) file.set(arch_ + "." + key, c.number(from));
    };
    file.set("general.architecture", arch_);
    whole("context_length", "max_position_embeddings");
    whole("embedding_length", "hidden_size");
    whole("block_count", "num_hidden_layers");
    whole("feed_forward_length", "intermediate_size");
    whole("attention.head_count", "num_attention_heads");
    whole("attention.head_count_kv", "num_key_value_heads");
    whole("attention.key_length", "head_dim");
    whole("attention.value_length", "head_dim");
    whole("attention.sliding_window", "sliding_window");
    whole("vocab_size", "vocab_size");
    whole("expert_count", c.has("num_experts") ? "num_experts" : "num_local_experts");
    whole("expert_used_count", "num_experts_per_tok");
    whole("expert_feed_forward_length", "moe_intermediate_size");
    real("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    real("attention.layer_norm_epsilon", "layer_norm_eps");
    real("rope.freq_base", "rope_theta");
    real("embedding_scale", "embedding_multiplier");
    real("residual_scale", "residual_multiplier");
    real("attention.scale", "attention_multiplier");
    real("logit_scale", "logits_scaling");
    const int head = c.has("head_dim") ? c.integer("head_dim")
                                       : c.integer("hidden_size") / c.integer("num_attention_heads");
    const float share = c.number("partial_rotary_factor", 1.0f);
    file.set(arch_ + ".rope.dimension_count", static_cast<std::uint32_t>(static_cast<float>(head) * share));
  }

  const Checkpoint& from_;
  GgufCopyOptions options_;
  std::string arch_;
  bool permutes_ = false;
  std::vector<std::pair<std::string, Data>> tensors_;
};

}  // namespace

std::filesystem::path write_gguf_copy(const Checkpoint& original, const std::filesystem::path& folder,
                                      const GgufCopyOptions& options) {
  return GgufCopy(original, options).write(folder);
}

}  // namespace inferno::testing
