// Reports how many bytes of a checkpoint have been read while a model is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno {

using ReportProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// A checkpoint that calls `report` at most ten times a second while it is read: from any reading thread, but
// never from two at once. The total counts the tensors that find() returned; loading finds every tensor
// before it reads the first one.
std::unique_ptr<Checkpoint> with_progress(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report);

}  // namespace inferno
