// A decoder-only transformer described as data: families produce it, and the one forward pass (decoder.cpp)
// runs it.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace inferno {

enum class NormKind { rms, layer };
enum class Activation { silu, gelu_tanh, gelu_erf, relu, swiglu_clamped };

struct NoScaling {};
struct LinearScaling {
  float factor;
};
struct Llama3Scaling {
  float factor, low_freq_factor, high_freq_factor;
  int original_context;
};
struct YarnScaling {
  float factor, beta_fast, beta_slow;
  int original_context;
  bool truncate;
  float attention_factor;  // multiplies sines and cosines
};
struct LongRopeScaling {
  std::vector<float> short_factors, long_factors;
  int original_context;
  float short_attention_factor, long_attention_factor;
};
// What GGUF keeps of Llama 3's scaling: the result, one divisor for each frequency.
struct FactorScaling {
  std::vector<float> factors;
};
using RopeScaling =
    std::variant<NoScaling, LinearScaling, Llama3Scaling, YarnScaling, LongRopeScaling, FactorScaling>;

// Pairs are (i, i + dims / 2) of each head: the loader reorders rows of files that pair neighbours.
struct Rope {
  float theta = 10000.0f;
  int dims = 0;  // rotated dimensions of each head, from its start
  RopeScaling scaling = NoScaling{};
};
struct LearnedPositions {
  int count = 0;
};
using Positions = std::variant<Rope, LearnedPositions>;

struct AttentionSpec {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0.0f;
  int window = 0;  // tokens visible to a query, itself included; 0 means all
  bool qkv_bias = false;
  bool out_bias = false;
  bool qk_norm = false;  // each head of Q and K is RMS-normalized before rotation
  bool sinks = false;    // one learned logit per head joins the softmax and is then dropped

  bool operator==(const AttentionSpec&) const = default;
};

// `gated`: two halves, act(gate) * up. swiglu_clamped is gated by nature and the only one to read `limit`:
// g = min(gate, limit), u = clamp(up, -limit, limit), g * sigmoid(1.702 g) * (u + 1).
struct ActivationSpec {
  Activation kind = Activation::silu;
  bool gated = true;
  float limit = 0.0f;

  bool operator==(const ActivationSpec&) const = default;
};

struct DenseMlp {
  int hidden = 0;
  ActivationSpec activation;
  bool bias = false;

  bool operator==(const DenseMlp&) const = default;
};

struct MoeMlp {
  int experts = 0;
  int active = 0;
  int hidden = 0;
  ActivationSpec activation;
  bool router_bias = false;
  bool expert_bias = false;
  // true: softmax over the chosen experts; false: over all experts, of which the others are dropped.
  bool renormalize = true;

  bool operator==(const MoeMlp&) const = default;
};

struct BlockSpec {
  AttentionSpec attention;
  std::variant<DenseMlp, MoeMlp> mlp;
  // Attention and MLP read the same norm and are added together (Phi); otherwise one follows the other.
  bool parallel = false;

  bool operator==(const BlockSpec&) const = default;
};

struct ModelSpec {
  int vocab = 0;
  int width = 0;
  int context = 0;  // maximum number of positions
  NormKind norm = NormKind::rms;
  float norm_epsilon = 1e-5f;
  Positions positions = Rope{};
  std::vector<BlockSpec> blocks;
  float embedding_scale = 1.0f;
  float residual_scale = 1.0f;
  float logit_scale = 1.0f;
  bool tied_head = false;
  bool head_bias = false;
};

}  // namespace inferno
