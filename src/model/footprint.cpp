#include "model/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/sizes.h"
#include "model/kv_cache.h"

namespace inferno {
namespace {

std::uint64_t active_bytes(const ModelSpec& spec, const SlotRequest& request, std::uint64_t bytes) {
  if (request.slot == Slot::embedding) return spec.tied_head ? bytes : 0;
  if (request.slot == Slot::positions) return 0;
  if (request.experts == 0) return bytes;
  const auto& mlp = std::get<MoeMlp>(spec.blocks[static_cast<std::size_t>(request.layer)].mlp);
  return bytes * static_cast<std::uint64_t>(mlp.active) / static_cast<std::uint64_t>(mlp.experts);
}

void add_vector(WeightFootprint& out, std::uint64_t values) {
  out.parameters += values;
  out.bytes += values * sizeof(float);
}

void add_matrix(WeightFootprint& out, const ModelSpec& spec, const SlotRequest& request,
                const PlannedPart& part) {
  const auto rows =
      static_cast<std::uint64_t>(std::max(part.experts, 1)) * static_cast<std::uint64_t>(part.rows);
  const auto cols = static_cast<std::uint64_t>(request.cols);
  const std::uint64_t bytes = rows * bytes_for(loaded_format(part), cols);
  out.parameters += rows * cols;
  out.bytes += bytes;
  out.token_bytes += active_bytes(spec, request, bytes);
  if (request.bias) add_vector(out, rows);
  if (request.experts == 0) return;
  const auto& mlp = std::get<MoeMlp>(spec.blocks[static_cast<std::size_t>(request.layer)].mlp);
  out.expert_bytes += bytes;
  out.active_share = static_cast<double>(mlp.active) / static_cast<double>(mlp.experts);
}

// Rows of a step for which each sequence has blocks beyond its window. Few sequences have many rows in the
// same step, so that all share the blocks for further rows, of two steps: the second is planned before the
// first frees what slid out of a window.
constexpr int own_step_tokens = 512;

// What one window group of the cache needs.
struct GroupNeed {
  int window = 0;
  std::size_t block_bytes = 0;
  double wanted = 0.0;  // blocks for all sequences
  int one = 0;          // blocks for one of them
  int min_blocks = 0;
};

std::vector<GroupNeed> group_needs(const ModelSpec& spec, CacheTypes types, const CacheLimits& limits,
                                   int context) {
  std::vector<GroupNeed> out;
  const int own_tokens = std::min(limits.step_tokens, own_step_tokens);
  for (const int window : window_groups(spec)) {
    const int whole = blocks_for(context, limits.block_size);
    const int min_blocks = window == 0 ? 1 : std::min(whole, window / limits.block_size + 2);
    const int one =
        window == 0 ? whole : std::min(whole, min_blocks + blocks_for(own_tokens, limits.block_size));
    const int further = limits.step_tokens > own_tokens ? 2 * limits.step_tokens - own_tokens : 0;
    const int shared = blocks_for(further, limits.block_size);
    const double most = static_cast<double>(whole) * limits.sequences;
    out.push_back({.window = window,
                   .block_bytes = cache_bytes_per_token(spec, window, types) *
                                  static_cast<std::size_t>(limits.block_size),
                   .wanted = std::min(most, static_cast<double>(one) * limits.sequences + shared),
                   .one = one,
                   .min_blocks = min_blocks});
  }
  return out;
}

std::vector<WeightShape> shapes_of(const TensorPlan& tensors) {
  std::vector<WeightShape> shapes;
  for (const PlannedSlot& slot : tensors.slots) {
    if (slot.request.is_vector) continue;
    for (const PlannedPart& part : slot.parts) {
      shapes.push_back({loaded_format(part), std::max(part.experts, 1), part.rows, slot.request.cols});
    }
  }
  return shapes;
}

// All in the same format, which is set later.
std::vector<WeightShape> shapes_of(const ModelSpec& spec) {
  std::vector<WeightShape> shapes;
  for (const SlotRequest& request : slot_requests(spec)) {
    if (request.is_vector) continue;
    for (const int rows : request.parts) {
      shapes.push_back({WeightFormat::bf16, std::max(request.experts, 1), rows, request.cols});
    }
  }
  return shapes;
}

// Computes a footprint for several contexts of one model.
class Sizes {
 public:
  struct Limits {
    DecoderLimits decoder;
    CacheLimits cache;
  };
  Sizes(const ModelSpec& spec, std::vector<WeightShape> shapes, const DeviceMemory& device,
        const Limits& limits)
      : spec_(spec), shapes_(std::move(shapes)), device_(device), limits_(limits) {
    limits_.cache.step_tokens = limits_.decoder.max_tokens;
    limits_.cache.max_bytes = 0;
  }

  Footprint footprint(const WeightFootprint& weights) const {
    Footprint out;
    out.context = limits_.decoder.context == 0 ? spec_.context : limits_.decoder.context;
    if (out.context > spec_.context) {
      fail(ErrorKind::invalid_request,
           fmt::format("a context of {} tokens exceeds this model's maximum of {}", out.context,
                       spec_.context),
           {.why = {}, .next = fmt::format("ask for at most {}, or leave the context out", spec_.context)});
    }
    out.weights = weights;
    out.cache_types = cache_types();
    out.workspace = workspace(out.context);
    out.cache = cache(out.context);
    out.available = device_.free_bytes;
    out.sequences = limits_.cache.sequences;
    out.model_context = spec_.context;
    out.max_context = max_context(weights.bytes);
    for (const int window : window_groups(spec_)) {
      out.windows.push_back({window, cache_bytes_per_token(spec_, window, out.cache_types)});
    }
    return out;
  }

 private:
  CacheTypes cache_types() const { return limits_.decoder.cache.with_default(device_.cache); }
  std::uint64_t workspace(int context) const {
    DecoderLimits limits = limits_.decoder;
    limits.context = context;
    const std::uint64_t decoder = activation_bytes(spec_, limits, device_.activations);
    if (device_.backend == nullptr) return decoder;
    return decoder +
           device_.backend->workspace_bytes(
               spec_, shapes_,
               {.tokens = limits.max_tokens, .logit_rows = limits.max_logit_rows, .context = context});
  }
  std::uint64_t cache(int context) const {
    constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max() / 4;
    return plan_cache(spec_, cache_types(), limits_.cache, context, unlimited).bytes;
  }
  int max_context(std::uint64_t weights) const {
    int fits = 0, too_long = spec_.context + 1;
    while (too_long - fits > 1) {
      const int middle = fits + (too_long - fits) / 2;
      (fits_beside(weights, middle) ? fits : too_long) = middle;
    }
    return fits;
  }
  bool fits_beside(std::uint64_t weights, int context) const {
    const std::uint64_t fixed = weights + workspace(context);
    return fixed < device_.free_bytes && cache(context) <= cache_budget(device_.free_bytes - fixed);
  }

  const ModelSpec& spec_;
  std::vector<WeightShape> shapes_;
  DeviceMemory device_;
  Limits limits_;
};

double bits_of(WeightFormat format) {
  const int block = block_elements(format);
  return 8.0 * static_cast<double>(bytes_for(format, static_cast<std::size_t>(block))) / block;
}

std::string what_would_fit(const Footprint& footprint, std::uint64_t free) {
  if (footprint.weights.parameters == 0 || free <= footprint.workspace) {
    return "the workspace alone leaves no room for any weights";
  }
  const double bits = 8.0 * static_cast<double>(free - footprint.workspace) /
                      static_cast<double>(footprint.weights.parameters);
  // What `inferno convert` can write, from large to small.
  for (const WeightFormat format : {WeightFormat::q8_0, WeightFormat::q6_k, WeightFormat::q4_k}) {
    if (bits_of(format) >= bits) continue;
    return fmt::format(
        "weights of up to {:.1f} bits each would fit, for example {}: `inferno convert --type {}`", bits,
        name_of(format), name_of(format));
  }
  return fmt::format("only weights of up to {:.1f} bits each would fit", bits);
}

}  // namespace

double WeightFootprint::step_bytes(int sequences) const {
  const double all = static_cast<double>(expert_bytes);
  const double dense = static_cast<double>(token_bytes) - all * active_share;
  return dense + all * (1.0 - std::pow(1.0 - active_share, sequences));
}

WeightFootprint weight_footprint(const ModelSpec& spec, const TensorPlan& tensors) {
  WeightFootprint out;
  for (const PlannedSlot& slot : tensors.slots) {
    const auto width = static_cast<std::uint64_t>(slot.request.cols);
    for (const PlannedPart& part : slot.parts) {
      if (!slot.request.is_vector) {
        add_matrix(out, spec, slot.request, part);
      } else {
        add_vector(out, part.biases.empty() ? width : 2 * width);
      }
    }
  }
  return out;
}

CachePlan plan_cache(const ModelSpec& spec, CacheTypes types, const CacheLimits& limits, int context,
                     std::size_t free_bytes) {
  const std::vector<GroupNeed> needs = group_needs(spec, types, limits, context);
  double wanted = 0.0;
  std::size_t minimum = 0;
  for (const GroupNeed& need : needs) {
    wanted += need.wanted * static_cast<double>(need.block_bytes);
    minimum += static_cast<std::size_t>(need.min_blocks) * need.block_bytes;
  }
  const std::size_t budget = limits.max_bytes > 0 ? limits.max_bytes : cache_budget(free_bytes);
  if (minimum > budget) {
    fail(ErrorKind::io,
         fmt::format("key/value cache: {} bytes needed for one sequence, {} available", minimum, budget),
         {.why = limits.max_bytes > 0 ? "this is the limit set for the cache"
                                      : "the cache may use half of the free memory",
          .next = "give the cache more memory or use a smaller model"});
  }
  // A cache larger than all sequences together holds prefixes, but only if it was asked for.
  const double max_share = limits.max_bytes > 0 ? std::numeric_limits<double>::max() : 1.0;
  const double share = std::min(max_share, static_cast<double>(budget) / wanted);
  CachePlan plan = {.groups = {}, .bytes = 0, .token_bytes = 0, .context = context};
  for (const GroupNeed& need : needs) {
    constexpr double max_blocks = 1 << 24;
    const int blocks = std::max(need.min_blocks, static_cast<int>(std::min(max_blocks, share * need.wanted)));
    plan.groups.push_back({need.window, blocks});
    plan.bytes += static_cast<std::size_t>(blocks) * need.block_bytes;
    plan.token_bytes += need.block_bytes / static_cast<std::size_t>(limits.block_size);
    if (need.window == 0) plan.context = std::min(plan.context, blocks * limits.block_size);
  }
  plan.full_sequences = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const int one = std::min(needs[i].one, blocks_for(plan.context, limits.block_size));
    plan.full_sequences = std::min(plan.full_sequences, std::max(1, plan.groups[i].blocks / one));
  }
  return plan;
}

DeviceMemory device_memory(const Backend& backend) {
  return {.activations = backend.activation_type(),
          .cache = backend.cache_type(),
          .free_bytes = backend.info().free_bytes,
          .backend = &backend};
}

std::uint64_t Footprint::cache_token_bytes() const {
  std::uint64_t bytes = 0;
  for (const Window& window : windows) bytes += window.token_bytes;
  return bytes;
}

std::uint64_t Footprint::read_per_token(int depth) const {
  std::uint64_t bytes = weights.token_bytes;
  for (const auto& [window, token_bytes] : windows) {
    bytes += token_bytes * static_cast<std::uint64_t>(window == 0 ? depth : std::min(window, depth));
  }
  return bytes;
}

Footprint model_footprint(const ModelSpec& spec, const TensorPlan& tensors, const DeviceMemory& device,
                          const DecoderLimits& limits, const CacheLimits& cache) {
  return Sizes(spec, shapes_of(tensors), device, {limits, cache}).footprint(weight_footprint(spec, tensors));
}

Footprint estimated_footprint(const ModelSpec& spec, std::uint64_t weight_bytes, const DeviceMemory& device,
                              const DecoderLimits& limits, const CacheLimits& cache) {
  std::vector<WeightShape> shapes = shapes_of(spec);
  WeightFootprint weights = {.bytes = weight_bytes};
  for (const WeightShape& shape : shapes) {
    weights.parameters += static_cast<std::uint64_t>(shape.count) * static_cast<std::uint64_t>(shape.rows) *
                          static_cast<std::uint64_t>(shape.cols);
  }
  // All quantized formats need the same workspaces on a GPU, because these hold decoded weights.
  if (10 * weight_bytes < 18 * weights.parameters) {
    for (WeightShape& shape : shapes) shape.format = WeightFormat::q4_k;
  }
  return Sizes(spec, std::move(shapes), device, {limits, cache}).footprint(weights);
}

void require_fit(const Footprint& footprint, const std::string& model, const DeviceInfo& device) {
  if (device.free_bytes == 0 || footprint.required() <= device.free_bytes) return;
  fail(
      ErrorKind::io,
      fmt::format("{}: needs {}, and {} has {} of {} free\n"
                  "  weights              {}\n"
                  "  workspace            {}\n"
                  "  key/value cache      {} for one sequence of {} tokens, less for shorter ones",
                  model, human_size(footprint.required()), device.name, human_size(device.free_bytes),
                  human_size(device.total_bytes), human_size(footprint.weights.bytes),
                  human_size(footprint.workspace), human_size(footprint.cache), footprint.context),
      {.why = what_would_fit(footprint, device.free_bytes),
       .next = "choose a smaller model or quantization, close other programs that use this memory, or choose "
               "another --device"});
}

}  // namespace inferno
