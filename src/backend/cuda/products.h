// Matrix products and mixtures of experts: which kernel takes which shape, and the memory between kernels.
#pragma once

#include <functional>
#include <string>

#include "backend/backend.h"
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

  // Sizes the workspaces for steps of so many tokens.
  void reserve_expanded(std::size_t bytes) { expanded_.at_least(bytes); }
  void reserve_experts(const MoeMlp& spec, int width, std::int64_t tokens);

 private:
  struct Mixture;  // the memory of one mix_experts
  // Where a mixture goes: `out`, or the residual stream and the norm behind it, and `out` is free to use.
  struct Target {
    Matrix out;
    const AfterBranch* then = nullptr;
  };
  Mixture divide(Parts& parts, const MoeMlp& spec, int width, std::int64_t tokens) const;
  void multiply_expanded(std::span<const WeightView> parts, const Product& product);
  void mix(Matrix in, const MoeMlp& spec, const MoeWeights& weights, const Mixture& mixture,
           const Target& to);
  void finish(const Target& to, const MoeMlp& spec, const Mixture& mixture, const std::int32_t* places);
  void mix_few(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
               const Mixture& mixture);
  int group_for(const MoeMlp& spec, const MoeWeights& weights, const Mixture& mixture) const;
  void route_tokens(Matrix in, const MoeMlp& spec, const Linear& router, const Mixture& mixture);
  Matrix route_grouped(Matrix in, const MoeMlp& spec, const MoeWeights& weights, const Mixture& mixture);
  void mix_grouped(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                   const Mixture& mixture, int group);
  void mix_coded(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                 const Mixture& mixture);
  void mix_sorted(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                  const Mixture& mixture);
  void mix_plainly(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                   const Mixture& mixture);
  static GemmCall sorted_call(Matrix out, Matrix in, const Linear& weights, const Mixture& mixture);
  void with_decoded(const WeightView& weight, const Mixture& mixture,
                    const std::function<void(const WeightView&, std::int32_t)>& use);
  void multiply_sorted(GemmCall call, const Linear& weights, const Mixture& mixture);
  void activate_sorted(Matrix in, const MoeMlp& spec, const Linear& gate_up, const Mixture& mixture);

  const Queue& queue_;
  DType activations_;
  Workspace expanded_, between_;
  SingleToken single_;
};

// The kernel's name: what doctor and bench print.
std::string product_name(const Queue& queue, WeightFormat format, int tokens, DType activations);

}  // namespace inferno::cuda
