// The tables of linear products. Few tokens are bound by reading weights (stream, grouped, gemv), many by
// arithmetic (gemm, on weights decoded to bf16 first unless they are bf16).
#include "backend/cuda/dispatch/dispatch.h"

namespace inferno::cuda {
namespace {

constexpr int gemv_tokens = 32;     // in passes of gemv_max_tokens; later passes find the weights in L2
constexpr int grouped_tokens = 64;  // in groups; later groups find the weights in L2
constexpr int one_group = 24;
constexpr int generic_tokens = 15;  // decoding a whole weight for fewer costs more than it saves

// gemm reads tokens less often than groups do, once the weight has rows for every SM.
bool fills_device(const LinearProblem& problem) {
  const WeightView& weight = problem.parts.front();
  return weight.format == WeightFormat::bf16 && weight.rows >= gemm_rows * problem.device.multiprocessors;
}

bool is_narrow(const LinearProblem& problem) {
  return problem.in == DType::bf16;
}

bool streams(const LinearProblem& problem) {
  return is_narrow(problem) && problem.tokens == 1 && can_stream(problem.device, problem.parts.front(), 1);
}

bool is_grouped(const LinearProblem& problem) {
  // Other devices than Hopper have less shared memory, and which kernel is faster there is not measured.
  const int min_tokens = problem.device.warp_groups ? 2 : gemv_max_tokens + 1;
  const int max_tokens = fills_device(problem) ? one_group : grouped_tokens;
  const WeightView& weight = problem.parts.front();
  return is_narrow(problem) && problem.tokens >= min_tokens && problem.tokens <= max_tokens &&
         has_grouped(problem.device, weight) &&
         grouped_dense_n_tiles(problem.device, weight, problem.tokens, problem.out) > 0;
}

bool is_gemv(const LinearProblem& problem) {
  const bool is_for_gemm = fills_device(problem) && problem.tokens > one_group && problem.device.warp_groups;
  return is_narrow(problem) && problem.tokens <= gemv_tokens && !is_for_gemm &&
         has_gemv(problem.parts.front());
}

// cols % 8: rows are read 16 bytes at a time.
bool is_gemm(const LinearProblem& problem) {
  return is_narrow(problem) && problem.tokens > generic_tokens && problem.parts.front().cols % 8 == 0;
}

constexpr std::array linear_table = {
    LinearRow{LinearKernel::stream, "stream", streams},
    LinearRow{LinearKernel::grouped, "grouped", is_grouped},
    LinearRow{LinearKernel::gemv, "gemv", is_gemv},
    LinearRow{LinearKernel::gemm_hopper, "gemm_hopper",
              [](const LinearProblem& problem) {
                return is_gemm(problem) && is_decoded(problem.parts.front()) && problem.device.warp_groups;
              }},
    LinearRow{
        LinearKernel::gemm, "gemm",
        [](const LinearProblem& problem) { return is_gemm(problem) && is_decoded(problem.parts.front()); }},
    LinearRow{LinearKernel::expand_gemm_hopper, "expand + gemm_hopper",
              [](const LinearProblem& problem) { return is_gemm(problem) && problem.device.warp_groups; }},
    LinearRow{LinearKernel::expand_gemm, "expand + gemm", is_gemm},
    LinearRow{LinearKernel::generic, "linear_generic", takes_everything},
};
static_assert(is_in_order(linear_table) && linear_table.size() == linear_kernels);

// Hidden elements of a gated product, whose rows are gate rows and up rows.
int hidden_of(const LinearProblem& problem) {
  const int rows = problem.parts.front().rows;
  return problem.parts.size() == 1 ? rows / 2 : rows;
}

// Gate and up rows of the same elements in one block, so that only their result is written. Weights that take
// long to decode are better decoded once for all tokens, by a grouped linear.
bool is_gated_gemv(const LinearProblem& problem) {
  const FormatTraits& format = traits_of(problem.parts.front().format);
  if (!is_narrow(problem) || problem.tokens < 1 || problem.tokens > gemv_max_tokens) return false;
  if (!problem.activation->gated || (format.is_slow_to_decode && is_grouped(problem))) return false;
  return has_gated_gemv(problem.parts, hidden_of(problem));
}

constexpr std::array activated_table = {
    ActivatedRow{ActivatedKernel::stream, "stream, gated",
                 [](const LinearProblem& problem) { return is_gated_gemv(problem) && streams(problem); }},
    ActivatedRow{ActivatedKernel::gemv, "gemv, gated", is_gated_gemv},
    ActivatedRow{ActivatedKernel::gemm_hopper, "gemm_hopper, gated",
                 [](const LinearProblem& problem) {
                   return is_narrow(problem) && problem.tokens > gemv_tokens &&
                          has_gated_gemm(problem.device, problem.parts, hidden_of(problem),
                                         *problem.activation);
                 }},
    ActivatedRow{ActivatedKernel::linear_then_activate, "linear, activate", takes_everything},
};
static_assert(is_in_order(activated_table) && activated_table.size() == activated_kernels);

bool streams_add_norm(const LinearProblem& problem) {
  return streams(problem) && problem.parts.size() == 1 &&
         can_delay_norm(problem.device, *problem.norm, problem.parts.front(), 1);
}

constexpr std::array add_norm_table = {
    AddNormRow{AddNormKernel::stream_logits, "stream, add, norm, router",
               [](const LinearProblem& problem) {
                 return streams_add_norm(problem) && problem.router.size() == 1 &&
                        can_stream_router(problem.device, problem.router.front());
               }},
    AddNormRow{AddNormKernel::stream, "stream, add, norm", streams_add_norm},
    AddNormRow{AddNormKernel::linear_then_norm, "linear, add_norm", takes_everything},
};
static_assert(is_in_order(add_norm_table) && add_norm_table.size() == add_norm_kernels);

// Whether the kernel takes several alike parts, up to gemv_max_parts, in one launch.
constexpr bool joins_parts(LinearKernel kernel) {
  return kernel != LinearKernel::generic && kernel != LinearKernel::expand_gemm_hopper &&
         kernel != LinearKernel::expand_gemm;
}

}  // namespace

bool has_gemv(const WeightView& weight) {
  const FormatTraits& format = traits_of(weight.format);
  return format.has_gemv && weight.layout == format.layout && weight.cols % 8 == 0;
}

bool is_gate_and_up(std::span<const WeightView> parts, int hidden) {
  const WeightView &gate = parts.front(), &up = parts.back();
  if (!same_kind(gate, up)) return false;
  if (parts.size() == 1) return gate.rows == 2 * hidden && gate.can_begin_at(hidden);
  return parts.size() == 2 && gate.rows == hidden && up.rows == hidden;
}

bool has_gated_gemv(std::span<const WeightView> gate_up, int hidden) {
  return has_gemv(gate_up.front()) && is_gate_and_up(gate_up, hidden);
}

bool is_gate(const ActivationSpec& activation) {
  return activation.gated &&
         (activation.kind == Activation::silu || activation.kind == Activation::swiglu_clamped);
}

bool has_gated_gemm(const DeviceTraits& device, std::span<const WeightView> gate_up, int hidden,
                    const ActivationSpec& activation) {
  return device.warp_groups && is_gate(activation) && is_decoded(gate_up.front()) &&
         gate_up.front().cols % 8 == 0 && is_gate_and_up(gate_up, hidden);
}

bool can_delay_norm(const DeviceTraits& device, const Norm& norm, const WeightView& weight, int vectors) {
  return norm.kind == NormKind::rms && !norm.bias && can_stream(device, weight, vectors) &&
         stream_blocks(device, weight.rows) <= stream_max_blocks;
}

const LinearRow& choose_linear(const LinearProblem& problem) {
  return first_that_takes(linear_table, problem);
}
LinearLaunch linear_launch(const LinearProblem& problem, std::size_t first) {
  LinearProblem rest = problem;
  rest.parts = problem.parts.subspan(first);
  const LinearRow& row = choose_linear(rest);
  std::size_t count = 1;
  while (joins_parts(row.kernel) && count < rest.parts.size() && count < gemv_max_parts &&
         same_kind(rest.parts[count], rest.parts.front())) {
    ++count;
  }
  return {row, rest.parts.first(count)};
}
const ActivatedRow& choose_linear_activated(const LinearProblem& problem) {
  return first_that_takes(activated_table, problem);
}
const AddNormRow& choose_linear_add_norm(const LinearProblem& problem) {
  return first_that_takes(add_norm_table, problem);
}

}  // namespace inferno::cuda
