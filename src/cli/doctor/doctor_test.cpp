#include "cli/doctor/doctor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/sizes.h"
#include "checkpoint/config_json.h"
#include "cli/doctor/kernels.h"
#include "model/load.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "support/caught_error.h"
#include "support/forwarding_backend.h"

namespace inferno::doctor {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Sources sources_with(Environment::Values values = {}) {
  return {.environment = Environment(std::move(values), std::nullopt),
          .gpus = {},
          .gpu_sources = {},
          .build = {}};
}

Sources with_gpu(cuda::CudaBuild build, Device required = Device::any) {
  Sources sources = sources_with();
  sources.gpus = {.state = cuda::DriverState::ready, .cuda_version = 13000, .driver_version = "580"};
  sources.gpus.devices = {{.index = 0, .name = "H200", .major = 9, .minor = 0, .total_bytes = 1 << 30},
                          {.index = 1, .name = "T4", .major = 7, .minor = 5, .total_bytes = 1 << 30}};
  sources.build = std::move(build);
  sources.required = required;
  return sources;
}

const cuda::CudaBuild hopper_build = {.toolkit_version = 13000, .architectures = {"90a"}};

nlohmann::json facts_of(const Finding& finding) {
  return nlohmann::json::parse(finding.facts);
}

std::vector<Verdict> verdicts(const std::vector<Finding>& findings) {
  std::vector<Verdict> found;
  for (const Finding& finding : findings) found.push_back(finding.verdict);
  return found;
}

TEST(Doctor, SaysOfEachGpuWhetherThisProgramCanUseIt) {
  const auto findings = examine_gpus(with_gpu(hopper_build));
  ASSERT_EQ(verdicts(findings), (std::vector{Verdict::ok, Verdict::warn}));
  EXPECT_EQ(facts_of(findings[0])["usable"], true);
  EXPECT_THAT(findings[1].summary, HasSubstr("7.5"));
  EXPECT_EQ(facts_of(findings[1])["usable"], false);
}

TEST(Doctor, IsContentWhenOneOfTheGpusWorks) {
  EXPECT_EQ(verdicts(examine_gpus(with_gpu(hopper_build, Device::cuda))),
            (std::vector{Verdict::ok, Verdict::warn}));
  EXPECT_EQ(verdicts(examine_gpus(with_gpu({}, Device::cuda))), (std::vector{Verdict::fail, Verdict::fail}));
}

TEST(Doctor, AcceptsAMachineWithoutAGpuUnlessOneIsRequired) {
  Sources sources = sources_with();
  EXPECT_EQ(verdicts(examine_gpus(sources)), std::vector{Verdict::ok});
  sources.required = Device::cuda;
  EXPECT_EQ(verdicts(examine_gpus(sources)), std::vector{Verdict::fail});
}

TEST(Doctor, WarnsWhenMemoryIsUnknownAndFailsWhenThereIsNone) {
  Sources sources = sources_with();
  sources.root = fs::path(::testing::TempDir()) / "doctor_memory";
  EXPECT_EQ(examine_memory(sources).verdict, Verdict::warn);
  fs::create_directories(sources.root / "proc");
  std::ofstream(sources.root / "proc/meminfo") << "MemTotal: 4000000 kB\nMemAvailable: 1000 kB\n";
  EXPECT_EQ(examine_memory(sources).verdict, Verdict::fail);
  fs::remove_all(sources.root);
}

TEST(Doctor, SaysHowLargeAModelRuns) {
  Sources sources = sources_with();
  sources.root = fs::path(::testing::TempDir()) / "doctor_large_memory";
  fs::create_directories(sources.root / "proc");
  std::ofstream(sources.root / "proc/meminfo") << "MemTotal: 16000000 kB\nMemAvailable: 16000000 kB\n";
  const Finding finding = examine_memory(sources);
  fs::remove_all(sources.root);
  EXPECT_EQ(finding.verdict, Verdict::ok);
  EXPECT_GT(facts_of(finding)["max_parameters_q4_k"], 20'000'000'000);
  EXPECT_LT(facts_of(finding)["max_parameters_q4_k"], 16'000'000'000 * 2);
  EXPECT_THAT(finding.summary, HasSubstr("room for about 2"));
}

// Each of the three asks for the memory in its own way: doctor itself, `plan` through a footprint, loading
// through the refusal. The limit is that of a parent group.
TEST(Doctor, AgreesWithPlanAndLoadInANestedControlGroup) {
  constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
  Sources sources = sources_with();
  sources.root = fs::path(::testing::TempDir()) / "doctor_nested_group";
  const auto write = [&](const fs::path& name, const std::string& text) {
    fs::create_directories((sources.root / name).parent_path());
    std::ofstream(sources.root / name) << text;
  };
  write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/outer/memory.max", std::to_string(300 * mebi));
  write("sys/fs/cgroup/outer/memory.current", std::to_string(120 * mebi));
  write("sys/fs/cgroup/outer/memory.stat", "inactive_file " + std::to_string(20 * mebi) + "\n");
  write("sys/fs/cgroup/outer/inner/memory.max", std::to_string(1000 * mebi));
  write("sys/fs/cgroup/outer/inner/memory.current", std::to_string(10 * mebi));

  const Finding memory = examine_memory(sources);
  EXPECT_EQ(facts_of(memory)["obtainable_bytes"], 200 * mebi);
  EXPECT_EQ(memory.verdict, Verdict::warn) << memory.summary;  // the built-in model runs
  EXPECT_LT(facts_of(memory)["max_parameters_q4_k"], 300'000'000);

  const auto backend = make_cpu_backend(1, cpu::best_level(), SystemRoots::below(sources.root));
  const Shape& shape = shape_named("llama-3.2-1b");
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "a large model"), shape.type, {});
  const ModelDescription model = describe_model(*checkpoint);
  const TensorPlan tensors = plan_weights(model.spec, *model.architecture, *checkpoint, *backend);
  const Footprint footprint = model_footprint(model.spec, tensors, device_memory(*backend), {});
  EXPECT_EQ(footprint.available, 200 * mebi);
  EXPECT_FALSE(footprint.fits());

  const Error error = caught_error([&] { load_model(*checkpoint, *backend, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(),
              HasSubstr(fmt::format("{} of {} free", human_size(200 * mebi), human_size(300 * mebi))));
  fs::remove_all(sources.root);
}

TEST(Doctor, CountsTheModelsInTheCache) {
  const fs::path folder = fs::path(::testing::TempDir()) / "doctor_cache";
  fs::create_directories(folder / "models--org--name");
  fs::create_directories(folder / "datasets--org--name");
  const Finding finding = examine_cache(sources_with({{"HF_HUB_CACHE", folder.string()}}));
  EXPECT_EQ(facts_of(finding)["models"], 1);
  EXPECT_EQ(facts_of(finding)["exists"], true);
  EXPECT_EQ(facts_of(finding)["said_by"], "HF_HUB_CACHE");
  fs::remove_all(folder);
}

TEST(Doctor, WarnsWhenThereIsNoPlaceForACache) {
  EXPECT_EQ(examine_cache(sources_with()).verdict, Verdict::warn);
}

TEST(Doctor, ShowsTheVariablesThatAreSet) {
  const Finding finding = examine_settings(sources_with({{"HF_HOME", "/models"}, {"PATH", "/bin"}}));
  EXPECT_EQ(finding.summary, "HF_HOME=/models");
  EXPECT_EQ(facts_of(finding)["HF_HOME"], "/models");
  EXPECT_TRUE(facts_of(finding)["CUDA_VISIBLE_DEVICES"].is_null());
}

TEST(Doctor, PrintsVerdictsRemediesAndCounts) {
  const std::vector<Finding> findings = {
      {.check = "cpu", .summary = "fine"},
      {.check = "gpu 0", .verdict = Verdict::warn, .summary = "old", .next = "renew"},
      {.check = "disk", .verdict = Verdict::fail, .summary = "full\x1b[1m"}};
  EXPECT_EQ(as_table(findings),
            " ok   cpu       fine\n"
            " warn gpu 0     old\n"
            "                -> renew\n"
            " fail disk      full\\x1b[1m\n"
            "1 warning, 1 error (--json prints all facts)\n");
  const auto json = nlohmann::json::parse(as_json(findings));
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["checks"][1]["next"], "renew");
}

TEST(Doctor, ListsKernelsByTokensAndJoinsFormatsThatChooseAlike) {
  const auto cpu = make_cpu_backend(1);
  const std::string text = describe_kernels(*cpu);
  const Weight weight = cpu->weight_without_memory({WeightFormat::bf16, 1, 4096, 4096});
  const Linear weights = {.parts = {&weight}, .bias = {}};
  const std::string one = cpu->kernel_for(LinearOperation{weights}, 1);
  const std::string many = cpu->kernel_for(LinearOperation{weights}, 4096);
  EXPECT_THAT(text, HasSubstr(one));
  EXPECT_THAT(text, HasSubstr(one == many ? many : "more: " + many));
  for (const WeightFormat format : all_formats) EXPECT_THAT(text, HasSubstr(std::string(name_of(format))));
}

// Names the kind of operation, and for experts what comes before.
class NamingBackend final : public testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::string kernel_for(const Operation& operation, int /*tokens*/) const override {
    static constexpr std::array kinds = {"linear", "activated", "add_norm", "experts", "attention"};
    const auto* mix = std::get_if<MixExpertsOperation>(&operation);
    const auto* joined = std::get_if<LinearAddNormOperation>(&operation);
    const bool is_routed = (joined != nullptr && joined->router != nullptr) ||
                           (mix != nullptr && mix->norm != nullptr && mix->previous != nullptr);
    return fmt::format("<{}{}>", kinds.at(operation.index()), is_routed ? " routed" : "");
  }
};

// A block of the weights, all of one shape, and a head.
std::string kernels_of_block(std::variant<DenseMlp, MoeMlp> mlp, bool parallel) {
  const NamingBackend backend(make_cpu_backend(1));
  const Weight weight = backend.weight_without_memory({WeightFormat::bf16, 1, 64, 64});
  const Linear linear = {.parts = {&weight}, .bias = {}};
  const bool is_dense = std::holds_alternative<DenseMlp>(mlp);
  ModelSpec spec;
  spec.blocks.push_back({.attention = {.heads = 1, .kv_heads = 1, .head_dim = 64},
                         .mlp = std::move(mlp),
                         .parallel = parallel});
  ModelWeights weights;
  BlockWeights& block = weights.blocks.emplace_back();
  block.qkv = block.attention_out = weights.head = linear;
  if (is_dense) {
    block.mlp = DenseWeights{linear, linear};
  } else {
    block.mlp = MoeWeights{linear, linear, linear};
  }
  return describe_kernels(backend, spec, weights);
}

TEST(Doctor, AsksForTheOperationsThatADecoderRuns) {
  EXPECT_EQ(kernels_of_block(DenseMlp{}, false),
            "kernels: qkv bf16 64 x 64, head bf16 64 x 64\n"
            "         <linear>\n"
            "kernels: attention 1 x 64 (one sequence), attention 1 x 64 (one token for "
            "each sequence)\n"
            "         <attention>\n"
            "kernels: attention out bf16 64 x 64, down bf16 64 x 64\n"
            "         <add_norm>\n"
            "kernels: up bf16 64 x 64\n"
            "         <activated>\n");
  EXPECT_THAT(kernels_of_block(DenseMlp{}, true), ::testing::Not(HasSubstr("<add_norm>")));
  const std::string serial = kernels_of_block(MoeMlp{.experts = 8, .active = 2, .activation = {}}, false);
  EXPECT_THAT(serial, HasSubstr("kernels: attention out bf16 64 x 64\n         <add_norm routed>\n"));
  EXPECT_THAT(serial, HasSubstr("kernels: 2 of 8 experts (router bf16 64 x 64; up bf16 64 x 64; down bf16 "
                                "64 x 64)\n         <experts routed>\n"));
  EXPECT_THAT(kernels_of_block(MoeMlp{.experts = 8, .active = 2, .activation = {}}, true),
              HasSubstr("<experts>"));
}

}  // namespace
}  // namespace inferno::doctor
