// Pins which kernel each operation chooses, for every weight format, 1 to 4,096 tokens and five devices that
// need not be here. The golden file beside this test shows each choice as ranges of tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <sstream>

#include "backend/cuda/dispatch/dispatch.h"
#include "support/source_dir.h"

namespace inferno::cuda {
namespace {

constexpr int max_tokens = 4096;

struct PretendedDevice {
  std::string_view name;
  DeviceTraits traits;
};
constexpr std::array devices = {
    PretendedDevice{"A100, sm_80", {.multiprocessors = 108, .shared_limit = 163 << 10}},
    PretendedDevice{"RTX 4090, sm_89", {.multiprocessors = 128, .shared_limit = 99 << 10}},
    PretendedDevice{"H200, sm_90a",
                    {.multiprocessors = 132,
                     .shared_limit = 227 << 10,
                     .overlaps = true,
                     .max_cluster = 16,
                     .warp_groups = true}},
    PretendedDevice{"B200, sm_100",
                    {.multiprocessors = 148, .shared_limit = 227 << 10, .overlaps = true, .max_cluster = 16}},
    PretendedDevice{"RTX 5090, sm_120",
                    {.multiprocessors = 170, .shared_limit = 99 << 10, .overlaps = true, .max_cluster = 8}},
};

// "1 stream | 2-64 grouped | 65-4096 gemm"
std::string ranges(const std::function<std::string(int tokens)>& choice) {
  std::string out;
  for (int first = 1; first <= max_tokens;) {
    const std::string name = choice(first);
    int end = first + 1;
    while (end <= max_tokens && choice(end) == name) ++end;
    const std::string range = end == first + 1 ? fmt::to_string(first) : fmt::format("{}-{}", first, end - 1);
    out += fmt::format("{}{} {}", out.empty() ? "" : " | ", range, name);
    first = end;
  }
  return out;
}

// One line for all formats that choose alike, in the order of WeightFormat.
std::string for_each_format(int cols, const std::function<std::string(WeightFormat)>& choices) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> lines;
  for (const WeightFormat format : all_formats) {
    if (cols % block_elements(format) != 0) continue;
    const std::string choice = choices(format);
    auto line = std::ranges::find(lines, choice, [](const auto& l) { return l.first; });
    if (line == lines.end()) line = lines.insert(lines.end(), {choice, {}});
    line->second.push_back(name_of(format));
  }
  std::string out;
  for (const auto& [choice, formats] : lines) {
    out += fmt::format("  {}\n    {}\n", fmt::join(formats, " "), choice);
  }
  return out;
}

struct Size {
  int rows, cols;
};

std::string linear_choices(const DeviceTraits& device) {
  std::string out;
  constexpr std::array sizes = {Size{256, 256}, Size{2880, 2880}, Size{4096, 4096}, Size{4096, 14336},
                                Size{128256, 4096}};
  for (const auto& [rows, cols] : sizes) {
    out += fmt::format("linear, {} x {}\n", rows, cols);
    out += for_each_format(cols, [&, rows = rows, cols = cols](WeightFormat format) {
      const WeightView weight = view_of_shape({format, 1, rows, cols});
      return ranges([&](int tokens) {
        return std::string(choose_linear({.device = device, .parts = {&weight, 1}, .tokens = tokens}).name);
      });
    });
  }
  return out;
}

std::string joined_choices(const DeviceTraits& device) {
  constexpr int width = 4096, hidden = 14336;
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  const Norm norm;
  std::string out = fmt::format("linear_activated, silu, 2 x {} x {}\n", hidden, width);
  out += for_each_format(width, [&](WeightFormat format) {
    const WeightView weight = view_of_shape({format, 1, 2 * hidden, width});
    return ranges([&](int tokens) {
      return std::string(choose_linear_activated(
                             {.device = device, .parts = {&weight, 1}, .tokens = tokens, .activation = &silu})
                             .name);
    });
  });
  out += fmt::format("linear_add_norm, {} x {}\n", width, hidden);
  out += for_each_format(hidden, [&](WeightFormat format) {
    const WeightView weight = view_of_shape({format, 1, width, hidden});
    return ranges([&](int tokens) {
      return std::string(
          choose_linear_add_norm({.device = device, .parts = {&weight, 1}, .tokens = tokens, .norm = &norm})
              .name);
    });
  });
  return out;
}

std::string two_part_choices(const DeviceTraits& device) {
  constexpr int width = 4096, hidden = 14336;
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  std::string out =
      fmt::format("linear_activated, silu, {} x {} and {} x {}\n", hidden, width, hidden, width);
  return out + for_each_format(width, [&](WeightFormat format) {
           const std::array parts = {view_of_shape({format, 1, hidden, width}),
                                     view_of_shape({format, 1, hidden, width})};
           return ranges([&](int tokens) {
             return std::string(choose_linear_activated(
                                    {.device = device, .parts = parts, .tokens = tokens, .activation = &silu})
                                    .name);
           });
         });
}

// Of attention, before a router of 128 experts.
std::string router_choices(const DeviceTraits& device) {
  constexpr int width = 2048, attended = 4096;
  const Norm norm;
  const WeightView weight = view_of_shape({WeightFormat::bf16, 1, width, attended});
  std::string out = fmt::format("linear_add_norm, bf16 {} x {}, router of 128 experts\n", width, attended);
  return out + for_each_format(width, [&](WeightFormat format) {
           const WeightView router = view_of_shape({format, 1, 128, width});
           return ranges([&](int tokens) {
             return std::string(choose_linear_add_norm({.device = device,
                                                        .parts = {&weight, 1},
                                                        .tokens = tokens,
                                                        .norm = &norm,
                                                        .router = {&router, 1}})
                                    .name);
           });
         });
}

struct Experts {
  MoeMlp spec;
  int width = 0;
  int parts = 1;                            // of gate_up
  WeightFormat router = WeightFormat::f32;  // f16: its logits are never summed before
  std::optional<WeightFormat> down = {};    // the format of gate_up unless given
  std::string_view title = {};
};

std::string experts_choice(const DeviceTraits& device, const Experts& experts, WeightFormat format,
                           bool all) {
  const auto& [spec, width, parts, router_format, down_format, title] = experts;
  const Norm norm;
  const WeightView router = view_of_shape({router_format, 1, spec.experts, width});
  const std::vector<WeightView> up(static_cast<std::size_t>(parts),
                                   view_of_shape({format, spec.experts, 2 * spec.hidden / parts, width}));
  const WeightView down = view_of_shape({down_format.value_or(format), spec.experts, width, spec.hidden});
  return ranges([&](int tokens) {
    const ExpertsProblem problem = {.device = device,
                                    .spec = spec,
                                    .gate_up = up,
                                    .down = {&down, 1},
                                    .router = {&router, 1},
                                    .tokens = tokens,
                                    .norm = &norm,
                                    .logits_summed = tokens == 1 && can_stream_router(device, router)};
    if (!all) return std::string(choose_experts_kernel(problem).name);
    return kernels_of_experts(problem, {nullptr, DType::f32, tokens, width});
  });
}

std::string expert_choices(const DeviceTraits& device, const Experts& experts) {
  const MoeMlp& spec = experts.spec;
  std::string out = fmt::format("mix_experts_add_norm, {} of {} experts, {} x {}{}\n", spec.active,
                                spec.experts, spec.hidden, experts.width, experts.title);
  return out + for_each_format(std::gcd(experts.width, spec.hidden), [&](WeightFormat format) {
           return experts_choice(device, experts, format, false);
         });
}

// As `bench --verbose` prints them: with the route and with the products of which an operation consists.
std::string whole_names(const DeviceTraits& device, const Experts& gpt_oss, const Experts& qwen) {
  const Norm norm;
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  const auto line = [](std::string_view what, const std::string& names) {
    return fmt::format("whole names, {}\n    {}\n", what, names);
  };
  const std::array qkv = {view_of_shape({WeightFormat::q4_k, 1, 4096, 4096}),
                          view_of_shape({WeightFormat::q4_k, 1, 1024, 4096}),
                          view_of_shape({WeightFormat::q6_k, 1, 1024, 4096})};
  const WeightView up = view_of_shape({WeightFormat::bf16, 1, 28672, 4096});
  const auto problem = [&](std::span<const WeightView> parts, int tokens) {
    return LinearProblem{
        .device = device, .parts = parts, .tokens = tokens, .activation = &silu, .norm = &norm};
  };
  return line("linear, q4_k + q4_k + q6_k",
              ranges([&](int tokens) { return kernels_of_linear(problem(qkv, tokens)); })) +
         line("linear_activated, bf16",
              ranges([&](int tokens) { return kernels_of_linear_activated(problem({&up, 1}, tokens)); })) +
         line("linear_add_norm, bf16",
              ranges([&](int tokens) { return kernels_of_linear_add_norm(problem({&up, 1}, tokens)); })) +
         line("experts, mxfp4", experts_choice(device, gpt_oss, WeightFormat::mxfp4, true)) +
         line("experts, bf16", experts_choice(device, qwen, WeightFormat::bf16, true));
}

// Routers do not depend on the device.
std::string route_choices() {
  std::string out;
  for (const bool rounds : {false, true}) {
    out += fmt::format("route, 128 experts, 2048 columns{}\n", rounds ? ", rounded rows" : "");
    out += for_each_format(2048, [&](WeightFormat format) {
      const WeightView router = view_of_shape({format, 1, 128, 2048});
      return ranges([&](int tokens) {
        return std::string(choose_route({.router = {&router, 1},
                                         .in = {nullptr, DType::f32, tokens, 2048},
                                         .is_few = rounds,
                                         .rounds = rounds})
                               .name);
      });
    });
  }
  return out;
}

std::string attention_choices(const DeviceTraits& device) {
  std::string out;
  for (const int head : {64, 80, 128, 256}) {
    const AttentionSpec spec = {.heads = 32, .kv_heads = 8, .head_dim = head};
    const auto line = [&](std::string_view what, const std::function<int(int tokens)>& sequences) {
      const auto choice = [&](int tokens) {
        const AttentionProblem problem = {.device = device,
                                          .spec = spec,
                                          .tokens = tokens,
                                          .sequences = sequences(tokens),
                                          .rope_cols = head,
                                          .block_size = 16};
        const RotateAttendRow& joined = choose_rotate_and_attend(problem);
        return std::string(joined.kernel == RotateAttendKernel::decode ? joined.name
                                                                       : choose_attend(problem).name);
      };
      out += fmt::format("rotate_and_attend, heads of {}, {}\n    {}\n", head, what, ranges(choice));
    };
    line("one sequence", [](int) { return 1; });
    line("one token for each sequence", [](int tokens) { return tokens; });
    line("four sequences", [](int tokens) { return std::min(tokens, 4); });
  }
  return out;
}

std::string all_choices() {
  const MoeMlp gpt_oss = {.experts = 32,
                          .active = 4,
                          .hidden = 2880,
                          .activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f}};
  const MoeMlp qwen = {
      .experts = 128, .active = 8, .hidden = 768, .activation = {.kind = Activation::silu, .gated = true}};
  std::string out = route_choices();
  for (const auto& [name, traits] : devices) {
    out += fmt::format("\n== {}\n", name);
    const Experts with_f16_router = {
        .spec = qwen, .width = 2048, .router = WeightFormat::f16, .title = ", router f16"};
    const Experts two_parts = {.spec = qwen, .width = 2048, .parts = 2, .title = ", gate and up apart"};
    const Experts mixed = {.spec = qwen, .width = 2048, .down = WeightFormat::q6_k, .title = ", down q6_k"};
    out += linear_choices(traits) + joined_choices(traits) + two_part_choices(traits) +
           router_choices(traits) + expert_choices(traits, {.spec = gpt_oss, .width = 2880}) +
           expert_choices(traits, {.spec = qwen, .width = 2048}) + expert_choices(traits, two_parts) +
           expert_choices(traits, mixed) + expert_choices(traits, with_f16_router) +
           attention_choices(traits) +
           whole_names(traits, {.spec = gpt_oss, .width = 2880}, {.spec = qwen, .width = 2048});
  }
  return out;
}

TEST(Dispatch, ChoosesTheKernelsOfTheGoldenFile) {
  const std::string path = INFERNO_SOURCE_DIR "/src/backend/cuda/dispatch/choices.txt";
  const std::string choices = all_choices();
  if (std::getenv("INFERNO_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << choices;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_TRUE(golden.str() == choices)
      << "The choice of kernels differs from " << path << ". If that is intended, rewrite the file with\n"
      << "  INFERNO_UPDATE_GOLDEN=1 build/release/src/backend/backend_test --gtest_filter='Dispatch.*'\n"
      << "and look at `git diff`.";
}

// What a made-up small shape once got wrong: the LM head has rows for every SM, so gemm takes it from 25
// tokens on.
TEST(Dispatch, GivesWideWeightsToGemmEarlier) {
  const DeviceTraits& h200 = devices[2].traits;
  const auto name = [&](int rows, int tokens) {
    const WeightView weight = view_of_shape({WeightFormat::bf16, 1, rows, 4096});
    return choose_linear({.device = h200, .parts = {&weight, 1}, .tokens = tokens}).name;
  };
  EXPECT_EQ(name(4096, 64), "grouped");
  EXPECT_EQ(name(128256, 24), "grouped");
  EXPECT_EQ(name(128256, 25), "gemm_hopper");
  EXPECT_EQ(name(128256, 64), "gemm_hopper");
}

TEST(Dispatch, FloatActivationsUseTheGenericKernels) {
  for (const WeightFormat format : all_formats) {
    const WeightView weight = view_of_shape({format, 1, 256, 256});
    for (const int tokens : {1, 16, 4096}) {
      EXPECT_EQ(choose_linear(
                    {.device = devices[2].traits, .parts = {&weight, 1}, .tokens = tokens, .in = DType::f32})
                    .name,
                "linear_generic");
    }
  }
}

// A ladder of the formats that must not fall back to the generic kernel for one token.
TEST(Dispatch, HasAFastKernelForCommonFormats) {
  for (const WeightFormat format :
       {WeightFormat::bf16, WeightFormat::f16, WeightFormat::q8_0, WeightFormat::q4_k, WeightFormat::mxfp4,
        WeightFormat::q4_0, WeightFormat::int4_128, WeightFormat::int8_64, WeightFormat::fp8_128,
        WeightFormat::nvfp4_64}) {
    const WeightView weight = view_of_shape({format, 1, 4096, 4096});
    const LinearProblem problem = {.device = devices[2].traits, .parts = {&weight, 1}, .tokens = 1};
    EXPECT_EQ(choose_linear(problem).name, "stream") << name_of(format);
  }
}

}  // namespace
}  // namespace inferno::cuda
