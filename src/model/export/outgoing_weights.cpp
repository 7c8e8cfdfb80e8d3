#include "model/export/outgoing_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/format.h"
#include "tensor/quantize.h"

namespace inferno {
namespace {

constexpr std::int64_t elements_at_once = 8 << 20;

// Where the target's row comes from among the decoder's.
int source_row(int row, int rows, int rotary_heads) {
  if (rotary_heads == 0) return row;
  const int head_dim = rows / rotary_heads;
  const int head = row / head_dim, at = row % head_dim;
  return head * head_dim + at % 2 * (head_dim / 2) + at / 2;
}

// `count` rows of one expert's matrix from `first` on; nothing but the order of rows may matter.
PlannedPart rows_of(const PlannedPart& part, int expert, int first, int count) {
  PlannedPart out = part;
  const bool apart = part.tensors.size() > 1;
  StoredTensor tensor = part.tensors[apart ? static_cast<std::size_t>(expert) : 0];
  const auto matrices = static_cast<std::uint64_t>(apart ? 1 : std::max(part.experts, 1));
  const std::uint64_t matrix_bytes = tensor.bytes / matrices;
  const std::uint64_t row_bytes = matrix_bytes / static_cast<std::uint64_t>(part.rows);
  tensor.offset += (apart ? 0 : static_cast<std::uint64_t>(expert)) * matrix_bytes;
  tensor.offset += static_cast<std::uint64_t>(first) * row_bytes;
  tensor.bytes = static_cast<std::uint64_t>(count) * row_bytes;
  out.tensors = {std::move(tensor)};
  out.rows = count;
  out.experts = 0;
  return out;
}

[[noreturn]] void refuse(const OutgoingWeight& weight, float value) {
  if (std::isfinite(value)) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: {} does not fit {}", weight.name, value, name_of(weight.format)),
         {.why = {}, .next = "choose --type bf16, which has the range of f32"});
  }
  fail(
      ErrorKind::corrupt, fmt::format("{}: found a weight that is {}", weight.name, value),
      {.why = "a single such weight makes every result NaN or infinite", .next = "download the model again"});
}

struct Rows {
  std::span<const std::byte> bytes;  // in the stored format and the decoder's order
  WeightFormat format;
  int cols;
  const std::vector<std::int32_t>* column_order;  // StoredTensor::column_order, or null
};

// `count` rows of the target from `first` on, out of all of `rows`.
std::vector<std::byte> converted(const OutgoingWeight& weight, const Rows& rows, int count,
                                 ThreadPool& pool) {
  const auto cols = static_cast<std::size_t>(rows.cols);
  const std::size_t from_bytes = bytes_for(rows.format, cols), to_bytes = bytes_for(weight.format, cols);
  std::vector<std::byte> out(to_bytes * static_cast<std::size_t>(count));
  pool.parallel_for(count, 1, [&](const ThreadPool::Range& range) {
    std::vector<float> values(cols);
    for (auto row = static_cast<int>(range.begin); row < range.end; ++row) {
      const auto source = static_cast<std::size_t>(source_row(row, count, weight.rotary_heads));
      const auto from = rows.bytes.subspan(source * from_bytes, from_bytes);
      const auto to = std::span(out).subspan(static_cast<std::size_t>(row) * to_bytes, to_bytes);
      decode(rows.format, from, values);
      if (rows.column_order != nullptr) {
        const std::vector<float> stored = values;
        for (std::size_t c = 0; c < cols; ++c) {
          values[static_cast<std::size_t>((*rows.column_order)[c])] = stored[c];
        }
      }
      if (const auto bad = first_unfit(weight.format, values)) refuse(weight, values[*bad]);
      if (rows.format == weight.format && rows.column_order == nullptr) {
        std::memcpy(to.data(), from.data(), to.size());
      } else {
        quantize(weight.format, values, to);
      }
    }
  });
  return out;
}

void write_matrix(const OutgoingWeight& weight, int expert, ThreadPool& pool, const ByteSink& sink) {
  const PlannedPart& part = weight.slot->parts[weight.part];
  const int cols = weight.slot->request.cols;
  const WeightFormat format = part.tensors.front().format;
  const std::size_t row_bytes = bytes_for(format, static_cast<std::size_t>(cols));
  const std::vector<std::int32_t>* order = rows_of(part, expert, 0, 1).tensors.front().column_order.get();
  if (part.transposed || part.interleaved || weight.rotary_heads > 0) {
    const std::vector<std::byte> whole = read_part(rows_of(part, expert, 0, part.rows), cols);
    const auto bytes = std::span(whole).subspan(static_cast<std::size_t>(weight.first_row) * row_bytes,
                                                static_cast<std::size_t>(weight.rows) * row_bytes);
    sink(converted(weight, {bytes, format, cols, order}, weight.rows, pool));
    return;
  }
  const int step = static_cast<int>(std::clamp<std::int64_t>(elements_at_once / cols, 1, weight.rows));
  for (int done = 0; done < weight.rows; done += step) {
    const int count = std::min(step, weight.rows - done);
    const std::vector<std::byte> bytes =
        read_part(rows_of(part, expert, weight.first_row + done, count), cols);
    sink(converted(weight, {bytes, format, cols, order}, count, pool));
  }
}

void require_finite(const OutgoingWeight& weight, std::span<const float> values) {
  if (const auto bad = first_unfit(WeightFormat::f32, values)) refuse(weight, values[*bad]);
}

void write_vector(const OutgoingWeight& weight, const StoredTensor& tensor, const ByteSink& sink) {
  const std::vector<float> values = read_floats(tensor);
  require_finite(weight, values);
  sink(std::as_bytes(std::span(values)));
}

void write_bias(const OutgoingWeight& weight, const ByteSink& sink) {
  const PlannedSlot& slot = *weight.slot;
  const std::vector<float> all = read_biases(slot);
  require_finite(weight, all);
  const auto experts = static_cast<std::size_t>(std::max(slot.request.experts, 1));
  const std::size_t width = all.size() / experts;
  std::vector<float> values;
  for (std::size_t expert = 0; expert < experts; ++expert) {
    const std::size_t first = expert * width + static_cast<std::size_t>(weight.bias_column);
    for (int row = 0; row < weight.rows; ++row) {
      values.push_back(
          all[first + static_cast<std::size_t>(source_row(row, weight.rows, weight.rotary_heads))]);
    }
  }
  sink(std::as_bytes(std::span(values)));
}

}  // namespace

OutgoingTensor outgoing_weight(const OutgoingWeight& weight, ThreadPool& pool) {
  const SlotRequest& request = weight.slot->request;
  OutgoingTensor out = {.name = weight.name, .format = weight.format, .shape = {}, .write = {}};
  if (request.is_vector) {
    out.shape = {request.cols};
    out.write = [weight](const ByteSink& sink) {
      write_vector(weight, weight.slot->parts[weight.part].tensors.front(), sink);
    };
    return out;
  }
  if (request.experts > 0) out.shape.push_back(request.experts);
  out.shape.insert(out.shape.end(), {weight.rows, request.cols});
  out.write = [weight, &pool](const ByteSink& sink) {
    const int matrices = std::max(weight.slot->request.experts, 1);
    for (int expert = 0; expert < matrices; ++expert) write_matrix(weight, expert, pool, sink);
  };
  return out;
}

OutgoingTensor outgoing_bias(const OutgoingWeight& weight) {
  const SlotRequest& request = weight.slot->request;
  OutgoingTensor out = {.name = weight.name, .format = WeightFormat::f32, .shape = {}, .write = {}};
  if (request.is_vector) {
    out.shape = {request.cols};
    out.write = [weight](const ByteSink& sink) {
      write_vector(weight, weight.slot->parts[weight.part].biases.front(), sink);
    };
    return out;
  }
  if (request.experts > 0) out.shape.push_back(request.experts);
  out.shape.push_back(weight.rows);
  out.write = [weight](const ByteSink& sink) { write_bias(weight, sink); };
  return out;
}

}  // namespace inferno
