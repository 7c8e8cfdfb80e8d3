// A model family: which checkpoints it claims, how to read their config, what their tensors are
// called. Each family is one file in arch/; CMake builds the list from the file names.
#pragma once

#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "spec/model_spec.h"

namespace inferno {

// Every weight a block or the model can have, in the decoder's own vocabulary.
enum class Slot {
  embedding,
  positions,
  final_norm,
  head,
  attention_norm,
  qkv,
  q_norm,
  k_norm,
  sinks,
  attention_out,
  mlp_norm,
  gate_up,
  up,
  down,
  router,
  expert_gate_up,
  expert_down,
};

enum class Layout {
  out_in,              // one row per output feature, as torch.nn.Linear stores it
  in_out,              // transposed, as GPT-2's Conv1D stores it
  interleaved,         // gate and up rows alternate, as gpt-oss stores its MXFP4 experts
  interleaved_in_out,  // the same, transposed, as gpt-oss stores unquantized experts
};

struct Naming {
  Slot slot;
  // Without ".weight" or ".bias"; stacked in this order. "{}" is the layer's index; "{e}", where it stands,
  // the expert's: such tensors are stacked over all experts.
  std::vector<std::string_view> tensors;
  Layout layout = Layout::out_in;
};

// How a GGUF file orders the rows of Q and K: llama.cpp permutes those of Llama's descendants so that
// rotary pairs are neighbours. The loader puts them back.
enum class GgufRows { as_stored, rotary_neighbours };

struct Architecture {
  std::vector<std::string_view> hf_types;    // config.json's "model_type"
  std::vector<std::string_view> gguf_types;  // "general.architecture"
  GgufRows gguf_rows = GgufRows::as_stored;
  std::vector<Naming> names;  // Hugging Face; GGUF's names are one table for all families
  std::vector<std::string_view>
      known_keys;  // config keys that change the mathematics elsewhere, but not here
  ModelSpec (*describe)(const Config&);
};

// Throws Error{unsupported}, saying what it is where that is known and listing what is supported.
const Architecture& architecture_for(const Checkpoint& checkpoint);
const std::vector<Architecture>& architectures();

}  // namespace inferno
