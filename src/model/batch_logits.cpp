#include "model/batch_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/kv_cache.h"
#include "model/step.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

constexpr int block_size = 32;

// A block table of its own for each sequence, the same for every window group.
std::vector<std::vector<int>> block_tables(std::size_t sequences, int each) {
  std::vector<std::vector<int>> out;
  for (std::size_t i = 0; i < sequences; ++i) {
    std::vector<int>& blocks = out.emplace_back(static_cast<std::size_t>(each));
    std::iota(blocks.begin(), blocks.end(), static_cast<int>(i) * each);
  }
  return out;
}

void check_tokens(std::span<const std::vector<TokenId>> sequences, int vocab) {
  for (const std::vector<TokenId>& sequence : sequences) {
    for (const TokenId token : sequence) {
      if (token >= 0 && token < vocab) continue;
      fail(ErrorKind::invalid_request, fmt::format("token {}: expected 0 to {}", token, vocab - 1));
    }
  }
}

}  // namespace

std::vector<float> last_logits(Decoder& decoder, Backend& backend,
                               std::span<const std::vector<TokenId>> sequences) {
  check_tokens(sequences, decoder.spec().vocab);
  const DecoderLimits& limits = decoder.limits();
  const int count = static_cast<int>(sequences.size());
  expects(count <= limits.max_logit_rows && count <= limits.max_tokens, "the sequences fit one step");
  const auto groups = window_groups(decoder.spec()).size();
  const int each = (limits.context + block_size - 1) / block_size;
  const std::vector<std::vector<int>> tables = block_tables(sequences.size(), each);
  KvCache cache(decoder.spec(), backend, std::vector<int>(groups, count * each), block_size);
  StepBuffers buffers(backend,
                      {.tokens = limits.max_tokens,
                       .sequences = count,
                       .logit_rows = limits.max_logit_rows,
                       .blocks_per_sequence = each},
                      static_cast<int>(groups), block_size);
  const auto slice = [&](std::size_t i, std::size_t start, std::size_t tokens, int logits) {
    return StepSlice{.tokens = std::span(sequences[i]).subspan(start, tokens),
                     .start = static_cast<int>(start),
                     .logits = logits,
                     .blocks = {groups, std::span<const int>(tables[i])}};
  };
  std::vector<StepSlice> last;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    expects(!sequences[i].empty(), "a sequence has tokens");
    const std::size_t before = sequences[i].size() - 1;
    const auto most = static_cast<std::size_t>(limits.max_tokens);
    for (std::size_t done = 0; done < before; done += most) {
      const StepSlice chunk = slice(i, done, std::min(most, before - done), 0);
      decoder.forward(buffers.fill(std::span(&chunk, 1)), cache.layers());
    }
    last.push_back(slice(i, before, 1, 1));
  }
  const Matrix result = decoder.forward(buffers.fill(last), cache.layers());
  std::vector<float> logits(sequences.size() * static_cast<std::size_t>(result.cols));
  backend.download(std::as_writable_bytes(std::span(logits)), result);
  return logits;
}

}  // namespace inferno
