// The tables of mixtures of experts. For one token each choice reads its own expert's weights; more tokens
// are sorted by expert, so that an expert's weights are read once for all of its tokens, or for a group of
// them.
#include <algorithm>
#include <cmath>

#include "backend/cuda/dispatch/dispatch.h"

namespace inferno::cuda {
namespace {

constexpr std::int64_t gemv_choices = 64;
constexpr int generic_tokens = 8;
// Choices for each expert: beyond them gemm is faster, even if all weights must be decoded for it.
constexpr int grouped_choices = 32, grouped_choices_decoded = 128;
// From here on decoding in registers, for which tokens are rearranged first, is faster.
constexpr int coded_choices = 16;
// Tokens for which tiles of few tokens are faster than `grouped`, and up to which routing by rows is.
constexpr int coded_few_tokens = 8, few_routed_tokens = 127;

bool is_narrow(const ExpertsProblem& problem) {
  return problem.activations == DType::bf16;
}

bool streams(const ExpertsProblem& problem) {
  const MoeMlp& spec = problem.spec;
  if (problem.tokens != 1 || !problem.logits_summed || problem.norm == nullptr) return false;
  return spec.activation.gated && spec.active <= stream_max_active &&
         is_gate_and_up(problem.gate_up, spec.hidden) &&
         can_stream(problem.device, problem.gate_up.front(), 1) && problem.down.size() == 1 &&
         can_delay_norm(problem.device, *problem.norm, problem.down.front(), spec.active);
}

bool is_coded_weight(const WeightView& weight) {
  const FormatTraits& format = traits_of(weight.format);
  return format.has_coded_gemm && weight.layout == format.layout && weight.cols % coded_depth == 0 &&
         weight.columns == nullptr;
}

// Whether the products that decode MXFP4 in registers take the weights.
bool has_coded(const ExpertsProblem& problem) {
  const int hidden = problem.spec.hidden;
  if (!is_narrow(problem) || problem.down.size() != 1) return false;
  if (!problem.device.warp_groups || coded_shared_bytes > problem.device.shared_limit) return false;
  const WeightView &down = problem.down.front(), &gate = problem.gate_up.front(),
                   &up = problem.gate_up.back();
  return is_gate(problem.spec.activation) && hidden % coded_depth == 0 && is_coded_weight(down) &&
         down.cols == hidden && std::ranges::all_of(problem.gate_up, is_coded_weight) &&
         is_gate_and_up(problem.gate_up, hidden) && gate.count == up.count;
}

bool is_coded(const ExpertsProblem& problem) {
  return problem.choices() >= std::int64_t{coded_choices} * problem.spec.experts && has_coded(problem);
}

// The share of the choices that most experts do not exceed if choices are random: the mean and some standard
// deviations more.
int usual_choices(const ExpertsProblem& problem, double deviations) {
  const double mean = static_cast<double>(problem.choices()) / problem.spec.experts;
  return std::min(static_cast<int>(std::ceil(mean + deviations * std::sqrt(mean))), problem.tokens);
}

bool has_gemv_pair(const ExpertsProblem& problem) {
  const WeightView& down = problem.down.front();
  const int active = problem.spec.active;
  return is_narrow(problem) && problem.spec.activation.gated &&
         has_gated_gemv(problem.gate_up, problem.spec.hidden) && has_gemv(down) &&
         active <= gemv_max_active && active * gemv_staged_bytes(down.cols) <= gemv_max_shared;
}

bool is_gemv(const ExpertsProblem& problem) {
  return has_gemv_pair(problem) && problem.choices() <= gemv_choices;
}

bool is_gemm(const ExpertsProblem& problem) {
  const auto has_whole_runs = [](const WeightView& part) { return part.cols % 8 == 0; };
  return is_narrow(problem) && problem.tokens > generic_tokens &&
         std::ranges::all_of(problem.gate_up, has_whole_runs) &&
         std::ranges::all_of(problem.down, has_whole_runs);
}

// Gate and up in one product: of weights that need no decoding, or of one matrix, which is decoded in one
// piece.
bool is_gated_gemm(const ExpertsProblem& problem) {
  if (!is_gemm(problem) || !problem.device.warp_groups || problem.gate_up.size() > 2) return false;
  if (problem.gate_up.size() == 2 && !std::ranges::all_of(problem.gate_up, is_decoded)) return false;
  const std::array decoded = {decoded_view(problem.gate_up.front()), decoded_view(problem.gate_up.back())};
  return has_gated_gemm(problem.device, std::span(decoded).first(problem.gate_up.size()), problem.spec.hidden,
                        problem.spec.activation);
}

constexpr std::array experts_table = {
    ExpertsRow{ExpertsKernel::stream, "stream", streams},
    ExpertsRow{ExpertsKernel::coded_few, "gemm_coded_few",
               [](const ExpertsProblem& problem) { return coded_few_tile(problem) > 0; }},
    ExpertsRow{ExpertsKernel::coded, "gemm_coded", is_coded},
    ExpertsRow{ExpertsKernel::grouped, "grouped",
               [](const ExpertsProblem& problem) { return expert_group(problem) > 0; }},
    ExpertsRow{ExpertsKernel::gemv, "gemv", is_gemv},
    ExpertsRow{ExpertsKernel::gemm_hopper_gated, "gemm_hopper, gated", is_gated_gemm},
    ExpertsRow{ExpertsKernel::gemm_hopper, "gemm_hopper",
               [](const ExpertsProblem& problem) { return is_gemm(problem) && problem.device.warp_groups; }},
    ExpertsRow{ExpertsKernel::gemm, "gemm", is_gemm},
    ExpertsRow{ExpertsKernel::generic, "linear_generic", takes_everything},
};
static_assert(is_in_order(experts_table) && experts_table.size() == experts_kernels);

bool routes_rows(const RouteProblem& problem) {
  return problem.is_few && problem.router.size() == 1 && problem.router.front().cols % route_run == 0 &&
         problem.router.front().columns == nullptr &&
         route_rows_bytes(problem.router.front().rows) <= route_rows_max_bytes;
}

bool is_aligned(const std::byte* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

bool routes_many(const RouteProblem& problem) {
  const WeightView& router = problem.router.front();
  const FormatTraits& format = traits_of(router.format);
  const Matrix& in = problem.in;
  return problem.activations == DType::bf16 && in.rows > generic_tokens && problem.router.size() == 1 &&
         format.has_route_many && router.layout == format.layout && router.count == 1 &&
         router.cols % route_run == 0 && is_aligned(router.data) && is_aligned(in.data) &&
         (in.dtype == DType::f32 || in.dtype == DType::bf16) &&
         route_many_bytes(router.rows) <= route_many_max_bytes;
}

// Whether every weight has a grouped kernel for f16 and no gated result can leave f16's range.
bool fits_f16(const ExpertsProblem& problem) {
  constexpr float limit = 3e4f;
  const auto takes_f16 = [](const WeightView& weight) { return traits_of(weight.format).has_grouped_f16; };
  return largest_activated(problem.spec.activation) < limit &&
         std::ranges::all_of(problem.gate_up, takes_f16) && std::ranges::all_of(problem.down, takes_f16);
}

constexpr std::array route_table = {
    RouteRow{RouteKernel::rows_f16, "route_rows, f16",
             [](const RouteProblem& problem) {
               return problem.rounds && problem.fits_f16 && routes_rows(problem);
             }},
    RouteRow{RouteKernel::rows, "route_rows", routes_rows},
    RouteRow{RouteKernel::many, "route_many", routes_many},
    RouteRow{RouteKernel::linear_then_route, "linear, route", takes_everything},
};
static_assert(is_in_order(route_table) && route_table.size() == route_kernels);

}  // namespace

// A group holds nearly every expert's tokens if choices are random; further groups read its weights again.
// One token has nothing to share.
int expert_group(const ExpertsProblem& problem) {
  const MoeMlp& spec = problem.spec;
  if (!is_narrow(problem) || (problem.tokens == 1 && has_gemv_pair(problem))) return 0;
  const WeightView &gate = problem.gate_up.front(), &down = problem.down.front();
  const bool decodes = gate.format != WeightFormat::bf16;
  const std::int64_t max_choices =
      (decodes ? grouped_choices_decoded : grouped_choices) * std::int64_t{spec.experts};
  if (!spec.activation.gated || problem.down.size() != 1 || problem.choices() > max_choices) return 0;
  if (!has_gated_gemv(problem.gate_up, spec.hidden)) return 0;
  if (!has_grouped(problem.device, gate) || !has_grouped(problem.device, down)) return 0;
  const int wanted = usual_choices(problem, 2.5);
  for (int n_tiles = std::min((wanted + 7) / 8, grouped_max_n_tiles); n_tiles > 0; --n_tiles) {
    if (grouped_shape(problem.device, gate, n_tiles, GroupedMode::gated).stages > 0 &&
        grouped_shape(problem.device, down, n_tiles, GroupedMode::plain).stages > 0) {
      return 8 * n_tiles;
    }
  }
  return 0;
}

// The smallest tile that holds most experts' tokens; further tiles decode their weights again.
int coded_few_tile(const ExpertsProblem& problem) {
  if (problem.tokens < coded_few_tokens || !has_coded(problem) || !fits_f16(problem)) return 0;
  const auto* tile = std::ranges::lower_bound(coded_few_rows, usual_choices(problem, 2.0));
  return tile == coded_few_rows.end() ? 0 : *tile;
}

const ExpertsRow& choose_experts_kernel(const ExpertsProblem& problem) {
  return first_that_takes(experts_table, problem);
}
RouteProblem route_problem(const ExpertsProblem& experts, ExpertsKernel kernel, Matrix in) {
  return {.router = experts.router,
          .in = in,
          .activations = experts.activations,
          .is_few = kernel == ExpertsKernel::grouped ||
                    (kernel == ExpertsKernel::coded_few && experts.tokens <= few_routed_tokens),
          .rounds = kernel == ExpertsKernel::grouped,
          .fits_f16 = fits_f16(experts)};
}
const RouteRow& choose_route(const RouteProblem& problem) {
  return first_that_takes(route_table, problem);
}

}  // namespace inferno::cuda
