// A model family: which checkpoints it claims, how to read their config, what their tensors are
// called. Each family is one file in arch/; CMake builds the list from the file names.
#pragma once

#include <string>
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

// How Hugging Face stores a matrix of plain floats; quantized ones always have one row per output feature.
enum class MatrixLayout {
  out_in,  // one row per output feature, as torch.nn.Linear stores it
  in_out,  // transposed, as GPT-2's Conv1D and gpt-oss's experts are
};

struct Naming {
  Slot slot;
  // Without ".weight" or ".bias". As many as the decoder's parts (Q, K, V; gate, up), or one that holds them
  // all stacked. "{}" is the layer's index; "{e}", if present, the expert's.
  std::vector<std::string_view> tensors;
  MatrixLayout layout = MatrixLayout::out_in;
  bool interleaved = false;  // gate and up rows alternate; the loader sorts them
};

// How a GGUF file orders the rows of Q and K: llama.cpp permutes those of Llama's descendants so that
// rotary pairs are neighbours. The loader puts them back.
enum class GgufRows { as_stored, rotary_neighbours };

struct Architecture {
  std::vector<std::string_view> hf_types;    // config.json's "model_type"
  std::vector<std::string_view> gguf_types;  // "general.architecture"
  GgufRows gguf_rows = GgufRows::as_stored;
  std::string_view prefix = "model.";  // of Hugging Face's names; a bare decoder was saved without it
  std::vector<Naming> names;           // Hugging Face's; GGUF's are one table for all families
  ModelSpec (*describe)(const Config&);
};

// nullptr if no family has that type in such files.
const Architecture* find_architecture(std::string_view type, Container container);
// Error{unsupported} for an architecture that find_architecture() does not know: what it is, if that is
// known, and the supported ones. `origin` is the model or file.
[[noreturn]] void refuse_architecture(const std::string& origin, std::string_view type, Container container);
// Error{unsupported} that describes a known but unsupported architecture and lists the supported ones.
const Architecture& architecture_for(const Checkpoint& checkpoint);
const std::vector<Architecture>& architectures();

}  // namespace inferno
