#include "model/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

struct KnownElsewhere {
  std::string_view type;
  std::string_view what;
};

// Architectures that users are likely to try, and why the decoder does not support them.
constexpr std::array known_elsewhere = {
    KnownElsewhere{"granitemoehybrid", "Granite 4 with Mamba layers; state-space layers are not supported"},
    KnownElsewhere{"granitehybrid", "Granite 4 with Mamba layers; state-space layers are not supported"},
    KnownElsewhere{"granitemoeshared", "Granite MoE with shared experts, which are not supported"},
    KnownElsewhere{"mamba", "a state-space model, not a transformer"},
    KnownElsewhere{"mamba2", "a state-space model, not a transformer"},
    KnownElsewhere{"jamba", "a hybrid of attention and Mamba layers; state-space layers are not supported"},
    KnownElsewhere{"nemotron_h",
                   "a hybrid of attention and Mamba layers; state-space layers are not supported"},
    KnownElsewhere{"falcon_h1",
                   "a hybrid of attention and Mamba layers; state-space layers are not supported"},
    KnownElsewhere{"qwen3_next", "a hybrid with linear attention, which is not supported"},
    KnownElsewhere{"rwkv", "a recurrent model, not a transformer"},
    KnownElsewhere{"gemma", "Gemma's scaled embeddings and norms are not supported"},
    KnownElsewhere{"gemma2", "Gemma 2's soft-capped logits and extra norms are not supported"},
    KnownElsewhere{"gemma3", "Gemma 3's extra norms and two rotary bases are not supported"},
    KnownElsewhere{"gemma3_text", "Gemma 3's extra norms and two rotary bases are not supported"},
    KnownElsewhere{"deepseek_v2", "latent attention is not supported"},
    KnownElsewhere{"deepseek_v3", "latent attention is not supported"},
    KnownElsewhere{"deepseek2", "latent attention is not supported"},
    KnownElsewhere{"llama4", "Llama 4's chunked attention and shared experts are not supported"},
    KnownElsewhere{"qwen2_moe", "shared experts are not supported"},
    KnownElsewhere{"qwen2moe", "shared experts are not supported"},
    KnownElsewhere{"phimoe", "its sparse mixer routing is not supported"},
    KnownElsewhere{"olmo2", "norms after attention and MLP are not supported"},
    KnownElsewhere{"gpt_neox", "its interleaved QKV layout is not supported"},
    KnownElsewhere{"gptj", "its interleaved rotary pairs are not supported"},
    KnownElsewhere{"t5", "an encoder-decoder; only decoders are supported"},
    KnownElsewhere{"bert", "an encoder; only decoders are supported"},
};

bool lists(const std::vector<std::string_view>& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

const Architecture* find_architecture(std::string_view type, Container container) {
  const auto found = std::ranges::find_if(architectures(), [&](const Architecture& arch) {
    return lists(container == Container::gguf ? arch.gguf_types : arch.hf_types, type);
  });
  return found == architectures().end() ? nullptr : &*found;
}

const Architecture& architecture_for(const Checkpoint& checkpoint) {
  const std::string_view type = checkpoint.architecture();
  if (const Architecture* found = find_architecture(type, checkpoint.container())) return *found;
  refuse_architecture(checkpoint.config().origin(), type, checkpoint.container());
}

void refuse_architecture(const std::string& origin, std::string_view type, Container container) {
  std::vector<std::string_view> known;
  for (const Architecture& arch : architectures()) {
    const auto& types = container == Container::gguf ? arch.gguf_types : arch.hf_types;
    known.insert(known.end(), types.begin(), types.end());
  }
  std::sort(known.begin(), known.end());
  const auto elsewhere = std::find_if(known_elsewhere.begin(), known_elsewhere.end(),
                                      [&](const KnownElsewhere& k) { return k.type == type; });
  fail(ErrorKind::unsupported, fmt::format("{}: architecture {} is not supported", origin, quote(type)),
       {.why = elsewhere == known_elsewhere.end() ? "no supported family has this name"
                                                  : std::string(elsewhere->what),
        .next = fmt::format("choose a model of a supported family: {}", fmt::join(known, ", "))});
}

}  // namespace inferno
