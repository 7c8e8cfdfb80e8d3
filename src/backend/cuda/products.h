// Matrix products and mixtures of experts: runs the kernels that the tables of dispatch/ choose, and owns the
// memory between kernels.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/dispatch/dispatch.h"
#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/experts/experts.h"
#include "backend/cuda/kernels/linear/linear.h"
#include "backend/cuda/memory.h"
#include "backend/cuda/single_token.h"

namespace inferno::cuda {

class Products {
 public:
  // activations: what products read. f32 means the generic kernels everywhere.
  Products(const Queue& queue, DeviceMemory& memory, DType activations)
      : queue_(queue),
        activations_(activations),
        expanded_(memory, "decoded weights"),
        between_(memory, "expert activations"),
        single_(queue, memory) {}

  void linear(Matrix out, const NormedRows& in, const Linear& weights);
  void linear_activated(Matrix out, Matrix wide, const NormedRows& in, const Linear& weights,
                        const ActivationSpec& activation);
  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights);

  NormedRows linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights);
  NormedRows mix_experts_add_norm(const AfterBranch& then, const NormedRows& in, const MoeMlp& spec,
                                  const MoeWeights& weights);
  SingleToken& single() { return single_; }

  // The kernels that the functions above choose if a decoder calls them: the rows are of type `activations`,
  // what experts read is f32.
  std::string kernels_of(const LinearOperation& operation, int tokens) const;
  std::string kernels_of(const LinearActivatedOperation& operation, int tokens) const;
  std::string kernels_of(const LinearAddNormOperation& operation, int tokens) const;
  std::string kernels_of(const MixExpertsOperation& operation, int tokens) const;

  // Size the workspaces before the first step.
  void reserve_expanded(std::size_t bytes) { expanded_.at_least(bytes); }
  void reserve_experts(const MoeMlp& spec, int width, std::int64_t tokens) {
    between_.at_least(experts_bytes(spec, width, tokens));
  }
  std::size_t experts_bytes(const MoeMlp& spec, int width, std::int64_t tokens) const;

 private:
  using Gemm = void(const Queue&, const GemmCall&);
  struct LinearCall;
  struct ActivatedCall;
  struct LinearViews;  // what a LinearProblem points to
  struct MixViews;
  struct Mixture;  // the memory of one mix_experts
  struct MixCall;

  LinearProblem problem_of(std::span<const WeightView> parts, Matrix in, DType out) const {
    return {.device = queue_, .parts = parts, .tokens = in.rows, .in = in.dtype, .out = out};
  }
  LinearProblem problem_of(const LinearActivatedOperation& operation, std::span<const WeightView> parts,
                           Matrix in, DType out) const;
  LinearProblem problem_of(const LinearAddNormOperation& operation, const LinearViews& views,
                           Matrix in) const;
  bool sums_logits(const LinearAddNormOperation& operation, int tokens) const;
  ExpertsProblem problem_of(const MixExpertsOperation& operation, const MixViews& views, Matrix in,
                            bool logits_summed) const;

  void run(LinearKernel kernel, const LinearCall& call);
  void run(ActivatedKernel kernel, const ActivatedCall& call);
  NormedRows run(ExpertsKernel kernel, const MixCall& call);

  void multiply(Gemm* gemm, const LinearCall& call);
  void multiply_expanded(Gemm* gemm, const LinearCall& call);

  Mixture divide(Parts& parts, const MoeMlp& spec, int width, std::int64_t tokens) const;
  NormedRows mix(const NormedRows& in, Matrix out, const AfterBranch* then, const MoeMlp& spec,
                 const MoeWeights& weights);
  NormedRows finish(const MixCall& call, const std::int32_t* places);
  Matrix route_tokens(const MixCall& call);
  Matrix narrowed(const MixCall& call, Matrix rows);
  NormedRows mix_gemv(const MixCall& call);
  NormedRows mix_grouped(const MixCall& call);
  NormedRows mix_coded(const MixCall& call);
  NormedRows mix_coded_few(const MixCall& call);
  NormedRows mix_sorted(const MixCall& call, Gemm* gemm, bool gated);
  NormedRows mix_generic(const MixCall& call);
  void with_decoded(const WeightView& weight, const Mixture& mixture,
                    const std::function<void(const WeightView&, std::int32_t)>& use);
  void multiply_sorted(Gemm* gemm, GemmCall call, std::span<const WeightView> parts, const Mixture& mixture);
  void activate_sorted(Matrix in, const MixCall& call);

  const Queue& queue_;
  DType activations_;
  Workspace expanded_, between_;
  SingleToken single_;
};

}  // namespace inferno::cuda
