#include "engine/cache_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "model/kv_cache.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

struct Wish {
  int window = 0;
  std::size_t block_bytes = 0;
  double wanted = 0.0;  // blocks
  int least = 0;
};

int blocks_for(int tokens, int block_size) {
  return (tokens + block_size - 1) / block_size;
}

std::vector<Wish> wishes(const ModelSpec& spec, DType type, const EngineOptions& options, int context) {
  std::vector<Wish> out;
  for (const int window : window_groups(spec)) {
    const int whole = blocks_for(context, options.block_size);
    const int least = window == 0 ? 1 : std::min(whole, window / options.block_size + 2);
    const int one = window == 0
                        ? whole
                        : std::min(whole, least + blocks_for(options.max_step_tokens, options.block_size));
    out.push_back({.window = window,
                   .block_bytes = cache_bytes_per_token(spec, window, type) *
                                  static_cast<std::size_t>(options.block_size),
                   .wanted = static_cast<double>(one) * options.max_sequences,
                   .least = least});
  }
  return out;
}

}  // namespace

CachePlan plan_cache(const ModelSpec& spec, DType type, const EngineOptions& options, int context,
                     std::size_t free_bytes) {
  const std::vector<Wish> groups = wishes(spec, type, options, context);
  double wanted = 0.0;
  std::size_t least = 0;
  for (const Wish& wish : groups) {
    wanted += wish.wanted * static_cast<double>(wish.block_bytes);
    least += static_cast<std::size_t>(wish.least) * wish.block_bytes;
  }
  const std::size_t budget = options.cache_bytes > 0 ? options.cache_bytes : free_bytes / 2;
  if (least > budget) {
    fail(ErrorKind::io,
         fmt::format("key/value cache: {} bytes needed for one sequence, {} available", least, budget),
         {.why = options.cache_bytes > 0 ? "the cache was limited to that"
                                         : "the cache may take half of the memory that is free",
          .next = "give the cache more memory or use a smaller model"});
  }
  // A cache larger than all sequences together is used for prefixes, but only where it was asked for.
  const double most = options.cache_bytes > 0 ? std::numeric_limits<double>::max() : 1.0;
  const double share = std::min(most, static_cast<double>(budget) / wanted);
  CachePlan plan = {.groups = {}, .bytes = 0, .context = context};
  for (const Wish& wish : groups) {
    constexpr double largest = 1 << 24;
    const int blocks = std::max(wish.least, static_cast<int>(std::min(largest, share * wish.wanted)));
    plan.groups.push_back({wish.window, blocks});
    plan.bytes += static_cast<std::size_t>(blocks) * wish.block_bytes;
    if (wish.window == 0) plan.context = std::min(plan.context, blocks * options.block_size);
  }
  return plan;
}

}  // namespace inferno
