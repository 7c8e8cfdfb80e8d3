#include "model/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

int blocks_for(int context, int block_size) {
  return (context + block_size - 1) / block_size;
}

std::vector<int> equal_pools(const ModelSpec& spec, int blocks) {
  return std::vector<int>(window_groups(spec).size(), blocks);
}

}  // namespace

Runner::Runner(Decoder& decoder, Backend& backend, int context)
    : decoder_(decoder),
      backend_(backend),
      context_(context),
      blocks_(static_cast<std::size_t>(blocks_for(context, block_size))),
      cache_(decoder.spec(), backend, equal_pools(decoder.spec(), blocks_for(context, block_size)),
             block_size),
      buffers_(backend,
               {.tokens = decoder.limits().max_tokens,
                .sequences = 1,
                .logit_rows = decoder.limits().max_logit_rows,
                .blocks_per_sequence = blocks_for(context, block_size)},
               static_cast<int>(window_groups(decoder.spec()).size()), block_size) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
}

std::vector<float> Runner::feed(std::span<const TokenId> tokens, int rows) {
  if (tokens.size() > static_cast<std::size_t>(context_ - position_)) {
    fail(ErrorKind::invalid_request, fmt::format("{} tokens do not fit a context of {} of which {} are used",
                                                 tokens.size(), context_, position_));
  }
  for (const TokenId token : tokens) {
    if (token < 0 || token >= decoder_.spec().vocab) {
      fail(ErrorKind::invalid_request,
           fmt::format("token {}: expected 0 to {}", token, decoder_.spec().vocab - 1));
    }
  }
  expects(rows >= 0 && static_cast<std::size_t>(rows) <= tokens.size(), "no more logits than tokens");
  std::vector<float> logits;
  logits.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(decoder_.spec().vocab));
  const DecoderLimits& limits = decoder_.limits();
  const int total = static_cast<int>(tokens.size());
  int done = 0;
  while (done < total) {
    const int quiet = std::max(0, total - rows - done);  // tokens before the first that needs logits
    const int count = quiet > 0 ? std::min(limits.max_tokens, quiet)
                                : std::min({limits.max_tokens, limits.max_logit_rows, total - done});
    step(tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
         quiet > 0 ? 0 : count, logits);
    done += count;
  }
  return logits;
}

void Runner::step(std::span<const TokenId> tokens, int rows, std::vector<float>& logits) {
  const StepSlice slice = {.tokens = tokens,
                           .start = position_,
                           .logits = rows,
                           .blocks = {window_groups(decoder_.spec()).size(), std::span<const int>(blocks_)}};
  const Matrix result = decoder_.forward(buffers_.fill(std::span(&slice, 1)), cache_.layers());
  position_ += static_cast<int>(tokens.size());
  if (rows == 0) return;
  expects(result.dtype == DType::f32, "logits are float");
  const std::size_t before = logits.size();
  logits.resize(before + static_cast<std::size_t>(rows) * static_cast<std::size_t>(result.cols));
  backend_.download(std::as_writable_bytes(std::span(logits).subspan(before)), result);
}

}  // namespace inferno
