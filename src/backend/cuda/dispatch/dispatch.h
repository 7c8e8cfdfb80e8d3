// Which kernels compute an operation: one problem struct and one table for each operation. The operations of
// the CUDA backend, Backend::kernel_for, whose names `inferno doctor --verbose` and `inferno bench --verbose`
// print, and the golden file of dispatch_test.cpp all call these functions, so the choice is defined in one
// place.
//
// Tables are plain C++ and part of every build, so that a choice can be printed and tested without a GPU. The
// CUDA build has a table of RunRow with the same kernels; is_in_order() compares both at compile time.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "backend/cuda/dispatch/shapes.h"

namespace inferno::cuda {

// Rows are in order of preference: the first that takes a problem runs it.
template <class Kernel, class Problem>
struct Row {
  Kernel kernel;
  std::string_view name;
  bool (*takes)(const Problem&);
};

template <class Kernel, class Run>
struct RunRow {
  Kernel kernel;
  Run run;
};

template <class Kernel, class Problem, std::size_t Count>
using Table = std::array<Row<Kernel, Problem>, Count>;

// Whether the rows are in the order of the enumerators, which makes a kernel's number its row.
template <class Rows>
constexpr bool is_in_order(const Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].kernel) != i) return false;
  }
  return true;
}

// The last row of a table takes everything.
template <class Kernel, class Problem, std::size_t Count>
constexpr const Row<Kernel, Problem>& first_that_takes(const Table<Kernel, Problem, Count>& table,
                                                       const Problem& problem) {
  std::size_t i = 0;
  while (i + 1 < Count && !table[i].takes(problem)) ++i;
  return table[i];
}

template <class Problem>
constexpr bool takes_everything(const Problem&) {
  return true;
}

// -- linear, linear_activated, linear_add_norm

struct LinearProblem {
  const DeviceTraits& device;
  std::span<const WeightView> parts;
  int tokens = 0;
  DType in = DType::bf16, out = DType::f32;
  // What follows the product:
  const ActivationSpec* activation = nullptr;  // linear_activated
  const Norm* norm = nullptr;                  // linear_add_norm
  std::span<const WeightView> router = {};     // linear_add_norm: of the experts that read the result
};

enum class LinearKernel : std::uint8_t {
  stream,
  grouped,
  gemv,
  gemm_hopper,
  gemm,
  expand_gemm_hopper,
  expand_gemm,
  generic,
};
inline constexpr std::size_t linear_kernels = 8;
using LinearRow = Row<LinearKernel, LinearProblem>;
// By the first part.
const LinearRow& choose_linear(const LinearProblem& problem);
// A product has a launch for each run of alike parts that its kernel can join.
struct LinearLaunch {
  const LinearRow& row;
  std::span<const WeightView> parts;
};
// The launch that begins with part `first`.
LinearLaunch linear_launch(const LinearProblem& problem, std::size_t first);

enum class ActivatedKernel : std::uint8_t { stream, gemv, gemm_hopper, linear_then_activate };
inline constexpr std::size_t activated_kernels = 4;
using ActivatedRow = Row<ActivatedKernel, LinearProblem>;
const ActivatedRow& choose_linear_activated(const LinearProblem& problem);

// stream_logits also sums the logits of the router.
enum class AddNormKernel : std::uint8_t { stream_logits, stream, linear_then_norm };
inline constexpr std::size_t add_norm_kernels = 3;
using AddNormRow = Row<AddNormKernel, LinearProblem>;
const AddNormRow& choose_linear_add_norm(const LinearProblem& problem);

// -- mix_experts, mix_experts_add_norm

struct ExpertsProblem {
  const DeviceTraits& device;
  const MoeMlp& spec;
  std::span<const WeightView> gate_up, down, router = {};
  int tokens = 0;
  DType activations = DType::bf16;
  const Norm* norm = nullptr;  // mix_experts_add_norm: what follows
  bool logits_summed = false;  // the operation before ran AddNormKernel::stream_logits

  std::int64_t choices() const { return std::int64_t{tokens} * spec.active; }
};

enum class ExpertsKernel : std::uint8_t {
  stream,
  coded_few,
  coded,
  grouped,
  gemv,
  gemm_hopper_gated,
  gemm_hopper,
  gemm,
  generic,
};
inline constexpr std::size_t experts_kernels = 9;
using ExpertsRow = Row<ExpertsKernel, ExpertsProblem>;
const ExpertsRow& choose_experts_kernel(const ExpertsProblem& problem);
// Tokens of a group of ExpertsKernel::grouped; 0: it does not take the problem.
int expert_group(const ExpertsProblem& problem);
// Tokens of a tile of ExpertsKernel::coded_few: one of coded_few_rows; 0: it does not take the problem.
inline constexpr std::array coded_few_rows = {8, 16, 24, 32, 48, 64, 96};
int coded_few_tile(const ExpertsProblem& problem);

// Where tokens go: the router's product, the choice of experts and, for grouped products, rounding of rows.
struct RouteProblem {
  std::span<const WeightView> router;
  Matrix in;
  DType activations = DType::bf16;
  bool is_few = false;    // by rows, because a batch of tokens would leave most SMs idle
  bool rounds = false;    // rows are also wanted in two bytes for each element
  bool fits_f16 = false;  // these may be f16, because weights and activation of the experts allow it
};

enum class RouteKernel : std::uint8_t { rows_f16, rows, many, linear_then_route };
inline constexpr std::size_t route_kernels = 4;
using RouteRow = Row<RouteKernel, RouteProblem>;
const RouteRow& choose_route(const RouteProblem& problem);
// How a kernel other than stream, which needs no route, has its tokens routed.
RouteProblem route_problem(const ExpertsProblem& experts, ExpertsKernel kernel, Matrix in);

// -- attend, rotate_and_attend

struct AttentionProblem {
  const DeviceTraits& device;
  const AttentionSpec& spec;
  int tokens = 0, sequences = 0;
  int rope_cols = 0, block_size = 0;  // of rotate_and_attend
  DType activations = DType::bf16;
  CacheTypes cache = {DType::bf16, DType::bf16};
};

enum class AttendKernel : std::uint8_t { hopper, hopper_and_tiles, tiles, rows };
inline constexpr std::size_t attend_kernels = 4;
using AttendRow = Row<AttendKernel, AttentionProblem>;
const AttendRow& choose_attend(const AttentionProblem& problem);

enum class RotateAttendKernel : std::uint8_t { decode, rotate_then_attend };
inline constexpr std::size_t rotate_attend_kernels = 2;
using RotateAttendRow = Row<RotateAttendKernel, AttentionProblem>;
const RotateAttendRow& choose_rotate_and_attend(const AttentionProblem& problem);

// -- names of all kernels that run for a problem, in order; launches of different kernels name their format

std::string kernels_of_linear(const LinearProblem& problem);
std::string kernels_of_linear_activated(const LinearProblem& problem);
std::string kernels_of_linear_add_norm(const LinearProblem& problem);
std::string kernels_of_experts(const ExpertsProblem& problem, Matrix in);
std::string kernels_of_attention(const AttentionProblem& problem);

// -- predicates that the tables of several operations share

bool has_gemv(const WeightView& weight);
// Rows of a gate, then rows of up: one matrix of 2 * hidden rows, or two alike of `hidden`.
bool is_gate_and_up(std::span<const WeightView> parts, int hidden);
bool has_gated_gemv(std::span<const WeightView> gate_up, int hidden);
// Activations that gemm kernels can apply to their sums: silu and its clamped variant, gated.
bool is_gate(const ActivationSpec& activation);
bool has_gated_gemm(const DeviceTraits& device, std::span<const WeightView> gate_up, int hidden,
                    const ActivationSpec& activation);
// Whether a stream kernel can add its result to the residual stream and leave 1 / rms to the next kernel.
bool can_delay_norm(const DeviceTraits& device, const Norm& norm, const WeightView& weight, int vectors);

}  // namespace inferno::cuda
