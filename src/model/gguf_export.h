// A Hugging Face checkpoint as the GGUF file that llama.cpp's converter would make of it. The tables that
// read such files are used backwards, and the result is read again before it is written: what a GGUF file
// cannot say about a model is refused, never left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/writer.h"
#include "spec/model_spec.h"

namespace inferno {

struct ExportOptions {
  WeightFormat type = WeightFormat::bf16;  // of matrices; vectors, routers and positions are f32
  std::optional<WeightFormat> experts;     // of experts; without: MXFP4 stays as it is, the rest is `type`
};

struct GgufExport {
  OutgoingGguf file;               // "general." and the architecture's keys; the caller adds the vocabulary's
  ModelSpec spec;                  // what the file describes
  std::vector<std::string> notes;  // tensors stored otherwise than asked for, one sentence for each reason
};

// Reads headers only. The tensors keep using `pool` when they are written, and fail then with Error{corrupt}
// naming the tensor when it holds a value that is not finite or that the chosen type cannot hold.
// Error{invalid_request} for a type that cannot be written, Error{unsupported} when the checkpoint is a GGUF
// file already or says something that such a file cannot, Error{corrupt} as bind() when tensors do not fit.
GgufExport export_gguf(const Checkpoint& checkpoint, const ExportOptions& options, ThreadPool& pool);

// The parts of the above.

// "general.architecture" for a checkpoint of that family.
std::string_view gguf_architecture(const Checkpoint& checkpoint);
// The keys under "{architecture}.".
GgufKeys architecture_keys(const ModelSpec& spec, const Config& config, std::string_view architecture);
// Divisors of the rotary frequencies, where the scaling is stored so.
std::vector<OutgoingTensor> rope_tensors(const ModelSpec& spec);
// llama.cpp's number for "general.file_type".
std::uint32_t gguf_file_type(const OutgoingGguf& file, const ExportOptions& options);

// Reads the file's keys and tensor names as a loader would. Error{unsupported} listing what a decoder made
// from them would do differently.
void require_same_model(const OutgoingGguf& file, const ModelSpec& original, std::string_view origin);

}  // namespace inferno
