// linear: few tokens are bound by reading weights (grouped, gemv), many by arithmetic (gemm, on weights
// decoded to bf16 first where they are not bf16). Whatever neither takes, linear_generic does.
#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/products.h"
#include "base/error.h"

namespace inferno::cuda {
namespace {

constexpr int gemv_tokens = 32;   // read in passes of eight tokens, the weights mostly from L2
constexpr int grouped_most = 64;  // tokens of grouped_linear(): groups read the weights from L2
constexpr int one_group = 24;
constexpr int generic_tokens = 15;  // decoding a whole weight for fewer would cost more than it saves

// Which kernel reads the weights as they are.
enum class Few { none, gemv, grouped };

// Elsewhere than on Hopper shared memory is smaller, and what is faster there has not been measured.
int min_grouped(const Queue& queue) {
  return queue.warp_groups ? 2 : gemv_max_tokens + 1;
}

// gemm takes more than a group's tokens of a bf16 matrix with rows for every multiprocessor: it reads tokens
// less often.
Few few_for(const Queue& queue, const WeightView& weight, Matrix out, Matrix in) {
  if (in.dtype != DType::bf16) return Few::none;
  const bool fills = weight.format == WeightFormat::bf16 && weight.rows >= gemm_rows * queue.multiprocessors;
  const bool grouped = out.rows >= min_grouped(queue) && out.rows <= (fills ? one_group : grouped_most);
  if (grouped && grouped_takes(queue, weight, out)) return Few::grouped;
  if (fills && out.rows > one_group && queue.warp_groups) return Few::none;
  return out.rows <= gemv_tokens && has_gemv(weight) ? Few::gemv : Few::none;
}

}  // namespace

// Several parts only of weights that need no decoding. Others come in slabs of tiles, as many as the
// workspace holds.
void Products::multiply_expanded(std::span<const WeightView> parts, const Product& product) {
  const WeightView& weight = parts.front();
  GemmCall call = {.out = product.out,
                   .in = product.in,
                   .column = product.column,
                   .bias = product.bias,
                   .bias_stride = product.bias_stride,
                   .weight = weight.data,
                   .rows = weight.rows,
                   .cols = weight.cols};
  if (parts.size() > 1) call.parts = parts;
  if (is_decoded(weight)) return gemm(queue_, call);
  const std::int64_t tile = tiles::tile_bytes(WeightFormat::bf16, weight.cols);
  const std::int64_t all = tiles::padded_rows(weight.rows) / tiles::tile_rows;
  // prepare() made room for the largest weight, whatever its size; without it, single tiles would be slow.
  const bool has_room = static_cast<std::int64_t>(expanded_.size()) >= tile;
  std::byte* room =
      expanded_.at_least(static_cast<std::size_t>(has_room ? tile : std::max<std::int64_t>(tile, 1 << 20)));
  const std::int64_t at_once = static_cast<std::int64_t>(expanded_.size()) / tile;
  for (std::int64_t first = 0; first < all; first += at_once) {
    const std::int64_t count = std::min(at_once, all - first);
    const auto row = static_cast<std::int32_t>(first * tiles::tile_rows);
    call.rows = std::min(static_cast<std::int32_t>(count * tiles::tile_rows), weight.rows - row);
    call.column = product.column + row;
    call.weight = room;
    expand(queue_, room, weight, {first, count}, nullptr);
    gemm(queue_, call);
  }
}

void Products::linear(Matrix out, const NormedRows& rows, const Linear& weights) {
  if (out.rows == 0) return;
  const Matrix in = rows.unfinished();
  const bool narrow = in.dtype == DType::bf16;
  Product product = {.out = out, .in = in, .bias = bias_of(weights), .bias_stride = weights.bias.cols};
  std::vector<WeightView> parts;
  for (const Weight* weight : weights.parts) parts.push_back(view(*weight));
  const auto streams = [&](const WeightView& part) { return single_.takes(in, part); };
  const bool all_stream = std::ranges::all_of(parts, streams);
  if (!all_stream) single_.finish(rows);
  const StreamInput streamed = all_stream ? stream_input(rows) : StreamInput{in, {}};
  for (std::size_t first = 0; first < parts.size();) {
    const WeightView& weight = parts[first];
    std::size_t end = first + 1;
    std::int32_t columns = weight.rows;
    const Few few = few_for(queue_, weight, out, in);
    const bool multiplies = narrow && weight.cols % 8 == 0 && out.rows > generic_tokens;
    const bool joins = few != Few::none || (multiplies && is_decoded(weight));
    while (joins && end < parts.size() && end - first < gemv_max_parts && same_kind(parts[end], weight)) {
      columns += parts[end++].rows;
    }
    const auto group = std::span(parts).subspan(first, end - first);
    if (streams(weight)) {
      stream_linear(queue_, group, out, product.column, streamed, product.bias);
    } else if (few == Few::gemv) {
      gemv(queue_, group, product);
    } else if (few == Few::grouped) {
      grouped_linear(queue_, group, product);
    } else if (multiplies) {
      multiply_expanded(group, product);
    } else {
      linear_generic(queue_, weight, product);
    }
    product.column += columns;
    first = end;
  }
}

// Gate and up rows of the same elements in one block, so that only their result is written. Weights that take
// long to decode are better decoded once for all tokens, by linear().
void Products::linear_activated(Matrix out, Matrix wide, const NormedRows& rows, const Linear& weights,
                                const ActivationSpec& activation) {
  const Matrix in = rows.unfinished();
  std::vector<WeightView> parts;
  for (const Weight* weight : weights.parts) parts.push_back(view(*weight));
  const WeightFormat format = parts.front().format;
  const bool shares = (format == WeightFormat::q4_k || format == WeightFormat::mxfp4) &&
                      few_for(queue_, parts.front(), wide, in) == Few::grouped;
  const bool fits = in.dtype == DType::bf16 && out.rows <= gemv_max_tokens && out.rows > 0 &&
                    activation.gated && !shares && gemv_takes_gated(parts, out.cols);
  if (fits && single_.takes(in, parts.front())) {
    stream_gated(queue_, parts, out, stream_input(rows), bias_of(weights), activation);
    return;
  }
  single_.finish(rows);
  const auto* bias = bias_of(weights);
  if (fits) {
    gemv_gated(queue_, parts, {.out = out, .in = in, .bias = bias, .bias_stride = weights.bias.cols}, {},
               activation);
  } else if (in.dtype == DType::bf16 && out.rows > gemv_tokens &&
             gemm_takes_gated(queue_, parts, out.cols, activation)) {
    gemm_gated(queue_, parts, {.out = out, .in = in, .bias = bias, .bias_stride = weights.bias.cols},
               activation);
  } else {
    linear(wide, in, weights);
    if (out.rows > 0) activate(queue_, out, wide, activation);
  }
}

NormedRows Products::linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights) {
  if (activations_ == DType::bf16) {
    if (auto delayed = single_.linear_add_norm(then, in, weights)) return std::move(*delayed);
  }
  linear(then.branch, in, weights);
  if (then.residual.rows > 0) add_norm(queue_, then.out, then.residual, then.branch, then.scale, *then.norm);
  return then.out;
}

std::string product_name(const Queue& queue, WeightFormat format, int tokens, DType activations) {
  if (activations == DType::f32) return "linear_generic, float32";
  const WeightView typical = {
      .format = format, .layout = fast_layout(format), .rows = 256, .cols = 256, .rows_between = 256};
  if (tokens == 1 && has_stream(queue, typical, 1)) return fmt::format("stream_{}, bf16", name_of(format));
  const Matrix out = {nullptr, DType::f32, tokens, typical.rows};
  if (tokens >= min_grouped(queue) && tokens <= grouped_most && grouped_takes(queue, typical, out)) {
    return fmt::format("grouped_{}, bf16", name_of(format));
  }
  if (tokens <= gemv_tokens && has_gemv(typical)) return fmt::format("gemv_{}, bf16", name_of(format));
  if (tokens <= generic_tokens) return "linear_generic, float32 on bf16 activations";
  return fmt::format("{}{}, bf16", format == WeightFormat::bf16 ? "" : "expand + ",
                     queue.warp_groups ? "gemm_hopper" : "gemm");
}

}  // namespace inferno::cuda
