// Converts a Hugging Face checkpoint to the GGUF file that llama.cpp's converter would write. The loader's
// tables are used in reverse, and the header is loaded and compared before it is written: a model that GGUF
// cannot represent is refused, never altered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/writer.h"
#include "model/export/weight_types.h"
#include "spec/model_spec.h"

namespace inferno {

using ExportOptions = WeightTypes;

struct GgufExport {
  OutgoingGguf file;               // "general." and the architecture's keys; the caller adds the vocabulary's
  ModelSpec spec;                  // what the file describes
  std::vector<std::string> notes;  // tensors stored otherwise than asked for, one sentence for each reason
};

// Reads headers only. The tensors keep using `pool` when they are written, and fail then with Error{corrupt}
// naming the tensor when it holds a value that is not finite or that the chosen type cannot hold.
// Error{invalid_request} for a type that cannot be written, Error{unsupported} when the checkpoint is a GGUF
// file already or says something that such a file cannot, Error{corrupt} if its tensors do not fit its
// config.
GgufExport export_gguf(const Checkpoint& checkpoint, const ExportOptions& options, ThreadPool& pool);

}  // namespace inferno
