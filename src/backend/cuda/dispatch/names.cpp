// The names of all kernels that run for a problem: rows of the tables that stand for several operations
// ("linear, activate") are replaced by the rows that these choose.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "backend/cuda/dispatch/dispatch.h"

namespace inferno::cuda {

std::string kernels_of_linear(const LinearProblem& problem) {
  std::vector<LinearLaunch> launches;
  for (std::size_t first = 0; first < problem.parts.size(); first += launches.back().parts.size()) {
    launches.push_back(linear_launch(problem, first));
  }
  const auto name = [](const LinearLaunch& launch) { return launch.row.name; };
  const auto is_same = [&](const LinearLaunch& launch) { return name(launch) == name(launches.front()); };
  if (std::ranges::all_of(launches, is_same)) return std::string(name(launches.front()));
  std::vector<std::string> names;
  for (const LinearLaunch& launch : launches) {
    names.push_back(fmt::format("{} ({})", name(launch), name_of(launch.parts.front().format)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string kernels_of_linear_activated(const LinearProblem& problem) {
  const ActivatedRow& row = choose_linear_activated(problem);
  if (row.kernel != ActivatedKernel::linear_then_activate) return std::string(row.name);
  return kernels_of_linear(problem) + ", activate";
}

std::string kernels_of_linear_add_norm(const LinearProblem& problem) {
  const AddNormRow& row = choose_linear_add_norm(problem);
  if (row.kernel != AddNormKernel::linear_then_norm) return std::string(row.name);
  return kernels_of_linear(problem) + ", add_norm";
}

std::string kernels_of_experts(const ExpertsProblem& problem, Matrix in) {
  const ExpertsRow& row = choose_experts_kernel(problem);
  if (row.kernel == ExpertsKernel::stream) return std::string(row.name);
  const RouteProblem routing = route_problem(problem, row.kernel, in);
  const RouteRow& route = choose_route(routing);
  if (route.kernel != RouteKernel::linear_then_route) return fmt::format("{}, {}", route.name, row.name);
  const LinearProblem logits = {
      .device = problem.device, .parts = problem.router, .tokens = problem.tokens, .in = in.dtype};
  return fmt::format("{}, route, {}", kernels_of_linear(logits), row.name);
}

std::string kernels_of_attention(const AttentionProblem& problem) {
  const RotateAttendRow& row = choose_rotate_and_attend(problem);
  if (row.kernel == RotateAttendKernel::decode) return std::string(row.name);
  return fmt::format("rotate_and_store, {}", choose_attend(problem).name);
}

}  // namespace inferno::cuda
