#include "model/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/error.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

std::vector<CacheGroup> equal_groups(const ModelSpec& spec, const BatchShape& shape) {
  std::vector<CacheGroup> groups;
  for (const int window : window_groups(spec)) {
    groups.push_back({window, shape.sequences * blocks_for(shape.context, shape.block_size)});
  }
  return groups;
}

StepLimits step_limits(const DecoderLimits& limits, const BatchShape& shape) {
  return {.tokens = limits.max_tokens,
          .sequences = shape.sequences,
          .logit_rows = limits.max_logit_rows,
          .blocks_per_sequence = blocks_for(shape.context, shape.block_size)};
}

void require_tokens(std::span<const TokenId> tokens, int vocab) {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < vocab) continue;
    fail(ErrorKind::invalid_request, fmt::format("token {}: expected 0 to {}", token, vocab - 1));
  }
}

}  // namespace

BatchRunner::BatchRunner(Decoder& decoder, Backend& backend, const BatchShape& shape)
    : decoder_(decoder),
      backend_(backend),
      block_tables_(static_cast<std::size_t>(shape.sequences)),
      cache_(decoder.spec(), backend, decoder.cache_types(), equal_groups(decoder.spec(), shape),
             shape.block_size),
      buffers_(backend, step_limits(decoder.limits(), shape),
               static_cast<int>(window_groups(decoder.spec()).size()), shape.block_size) {
  const int each = blocks_for(shape.context, shape.block_size);
  std::mt19937 random(7);
  for (std::size_t group = 0; group < window_groups(decoder.spec()).size(); ++group) {
    std::vector<int> blocks(static_cast<std::size_t>(shape.sequences * each));
    std::iota(blocks.begin(), blocks.end(), 0);
    if (shape.scattered) std::ranges::shuffle(blocks, random);
    for (std::size_t sequence = 0; sequence < block_tables_.size(); ++sequence) {
      const auto first = blocks.begin() + static_cast<int>(sequence) * each;
      block_tables_[sequence].emplace_back(first, first + each);
    }
  }
}

Matrix BatchRunner::step(std::span<const Input> inputs, StepTokens tokens) {
  std::vector<StepSlice> slices;
  for (const Input& input : inputs) {
    const int row = tokens == StepTokens::drawn ? static_cast<int>(slices.size()) : StepSlice::given;
    StepSlice& slice = slices.emplace_back(StepSlice{
        .tokens = input.tokens, .start = input.start, .logits = input.logits, .blocks = {}, .drawn = row});
    for (const std::vector<int>& blocks : block_tables_[static_cast<std::size_t>(input.sequence)]) {
      slice.blocks.emplace_back(blocks);
    }
  }
  return decoder_.forward(buffers_.fill(slices), cache_.layers());
}

std::vector<float> BatchRunner::read(const Matrix& logits) {
  expects(logits.dtype == DType::f32, "logits are float");
  std::vector<float> out(static_cast<std::size_t>(logits.rows) * static_cast<std::size_t>(logits.cols));
  backend_.download(std::as_writable_bytes(std::span(out)), logits);
  return out;
}

Runner::Runner(Decoder& decoder, Backend& backend, int context)
    : batch_(decoder, backend, {.context = context}), context_(context) {}

std::vector<float> Runner::feed(std::span<const TokenId> tokens, int rows) {
  if (tokens.size() > static_cast<std::size_t>(context_ - position_)) {
    fail(ErrorKind::invalid_request,
         fmt::format("{} tokens do not fit: {} of the {} tokens of the context are in use", tokens.size(),
                     position_, context_));
  }
  require_tokens(tokens, batch_.decoder().spec().vocab);
  expects(rows >= 0 && static_cast<std::size_t>(rows) <= tokens.size(), "no more logits than tokens");
  std::vector<float> logits;
  const DecoderLimits& limits = batch_.decoder().limits();
  const int total = static_cast<int>(tokens.size());
  int done = 0;
  while (done < total) {
    const int silent = std::max(0, total - rows - done);  // tokens before the first that needs logits
    const int count = silent > 0 ? std::min(limits.max_tokens, silent)
                                 : std::min({limits.max_tokens, limits.max_logit_rows, total - done});
    const BatchRunner::Input input = {
        .tokens = tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
        .start = position_,
        .logits = silent > 0 ? 0 : count};
    const Matrix result = batch_.step({&input, 1});
    position_ += count;
    done += count;
    if (input.logits == 0) continue;
    const std::vector<float> read = batch_.read(result);
    logits.insert(logits.end(), read.begin(), read.end());
  }
  return logits;
}

std::vector<float> last_logits(Decoder& decoder, Backend& backend,
                               std::span<const std::vector<TokenId>> sequences) {
  const DecoderLimits& limits = decoder.limits();
  const int count = static_cast<int>(sequences.size());
  expects(count <= limits.max_logit_rows && count <= limits.max_tokens, "the sequences fit one step");
  for (const std::vector<TokenId>& tokens : sequences) require_tokens(tokens, decoder.spec().vocab);
  BatchRunner batch(decoder, backend, {.sequences = count, .context = limits.context});
  const auto max_tokens = static_cast<std::size_t>(limits.max_tokens);
  std::vector<BatchRunner::Input> last;
  for (int i = 0; i < count; ++i) {
    const std::span<const TokenId> tokens = sequences[static_cast<std::size_t>(i)];
    expects(!tokens.empty(), "a sequence has tokens");
    const std::size_t before = tokens.size() - 1;
    for (std::size_t done = 0; done < before; done += max_tokens) {
      const BatchRunner::Input chunk = {.sequence = i,
                                        .tokens = tokens.subspan(done, std::min(max_tokens, before - done)),
                                        .start = static_cast<int>(done)};
      batch.step({&chunk, 1});
    }
    last.push_back({.sequence = i, .tokens = tokens.last(1), .start = static_cast<int>(before), .logits = 1});
  }
  return batch.read(batch.step(last));
}

}  // namespace inferno
