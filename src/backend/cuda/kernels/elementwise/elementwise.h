// Embedding, norms and other operations row by row, and small uploads.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstddef>
#include <span>

#include "backend/cuda/kernels/linear/weights.h"

namespace inferno::cuda {

class DeviceMemory;

// out[r] = scale * table[rows[r]], or out[r] += table[rows[r]].
void embed(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale);
void add_rows(const Queue& queue, Matrix out, const WeightView& table, Matrix rows);
void take_rows(const Queue& queue, Matrix out, Matrix in, Matrix rows);
void add_norm(const Queue& queue, Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm);
void convert(const Queue& queue, Matrix out, Matrix in);  // to another type
void activate(const Queue& queue, Matrix out, Matrix in, const ActivationSpec& activation);

// A small upload.
bool can_put(const std::byte* to, std::size_t bytes);
void put(const Queue& queue, std::byte* to, std::span<const std::byte> from);

// How fast the device reads its memory, which decoding is measured against: bytes in a second, the best of a
// few reads of two gibibytes.
double read_bandwidth(const Queue& queue, DeviceMemory& memory);

}  // namespace inferno::cuda
