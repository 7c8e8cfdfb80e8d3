// The operations of backend.h in double precision, as simple as possible: one loop for each index of the
// formula, no code shared with a backend.
#pragma once

#include <span>
#include <vector>

#include "spec/model_spec.h"
#include "support/host_matrix.h"

namespace inferno::reference {

// Row r of the result is in[r] * weight^T + bias; an empty bias is zero.
HostMatrix linear(const HostMatrix& in, const HostMatrix& weight, std::span<const double> bias);

// The columns of the parts, concatenated.
HostMatrix side_by_side(const std::vector<HostMatrix>& parts);

struct NormWeights {
  NormKind kind = NormKind::rms;
  double epsilon = 0.0;
  std::span<const double> gain, bias;  // bias is empty for rms
};
void norm(std::span<double> row, const NormWeights& weights);

double activation(double x, Activation kind);
HostMatrix activate(const HostMatrix& in, const ActivationSpec& spec);

// Rotates the pairs (i, i + half) of one head.
void rotate(std::span<double> head, std::span<const double> cosines, std::span<const double> sines);

// One query head against the keys and values of the positions it sees, [positions, head_dim] each.
struct Seen {
  HostMatrix keys, values;
};
std::vector<double> attend(std::span<const double> query, const Seen& seen, double scale, const double* sink);

struct Expert {
  HostMatrix gate_up, down;
  std::span<const double> gate_up_bias, down_bias;
};
struct Choice {
  int expert;
  double share;
};
// The spec.active largest logits, best first.
std::vector<Choice> choose(std::span<const double> logits, const MoeMlp& spec);
// The gap between the logits of the last chosen expert and the next one. If it is small, rounding may decide.
double margin(std::span<const double> logits, int active);
HostMatrix mix(const HostMatrix& in, const HostMatrix& logits, const MoeMlp& spec,
               const std::vector<Expert>& experts);

}  // namespace inferno::reference
