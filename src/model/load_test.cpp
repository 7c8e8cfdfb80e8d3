#include "model/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "checkpoint/config_json.h"
#include "model/synthetic/edited_checkpoint.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "model/tensor_plan.h"
#include "support/caught_error.h"
#include "support/forwarding_backend.h"

namespace inferno {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::array keys = {"hidden_size",         "intermediate_size",      "num_hidden_layers",
                             "num_attention_heads", "num_key_value_heads",    "vocab_size",
                             "rms_norm_eps",        "max_position_embeddings"};

// The tiny config with one key changed or added; `value` is JSON.
std::string with(std::string_view key, std::string_view value, std::string_view config = tiny_llama_config) {
  std::string text(config);
  const std::string quoted = '"' + std::string(key) + "\":";
  if (const auto at = text.find(quoted); at != std::string::npos) {
    const auto begin = at + quoted.size(), end = text.find_first_of(",}", begin);
    return text.replace(begin, end - begin, value);
  }
  return text.insert(text.rfind('}'), ", " + quoted + " " + std::string(value));
}

LoadedModel load(const Checkpoint& checkpoint, Backend& backend) {
  return load_model(checkpoint, backend, {.max_tokens = 8, .max_logit_rows = 1, .context = 16});
}

// The message of the error that loading ends in.
std::string refusal(const Checkpoint& checkpoint) {
  const auto backend = make_cpu_backend(1);
  const Error error = caught_error([&] { load(checkpoint, *backend); });
  EXPECT_TRUE(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported ||
              error.kind() == ErrorKind::invalid_request)
      << error.what();
  return std::string(error.what()) + "\n" + error.advice().why + "\n" + error.advice().next;
}

TEST(Load, AcceptsATinyLlama) {
  const auto backend = make_cpu_backend(1);
  const EditedCheckpoint checkpoint;
  const LoadedModel model = load(checkpoint, *backend);
  EXPECT_EQ(model.decoder->spec().blocks.size(), 2u);
  EXPECT_GT(model.report.weights.parameters, 0u);
}

TEST(Load, ListsWhatIsConvertedAndWhy) {
  const auto backend = make_cpu_backend(1);
  const EditedCheckpoint gpt2(
      R"({"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64, "vocab_size": 50})",
      R"({"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64, "vocab_size": 50})", "gpt2");
  const auto changes = [](const LoadReport& report, std::string_view tensor) {
    std::vector<std::string> found;
    for (const Conversion& one : report.conversions) {
      EXPECT_FALSE(one.why.empty());
      if (one.tensor.ends_with(tensor)) found.push_back(one.change);
    }
    return found;
  };
  const LoadReport report = load(gpt2, *backend).report;
  EXPECT_THAT(changes(report, "h.0.mlp.c_fc.weight"), ::testing::Contains("transposed"));
  EXPECT_THAT(changes(report, "h.0.ln_1.weight"), ::testing::IsEmpty()) << "it is f32 already";
  EXPECT_THAT(changes(report, "wte.weight"), ::testing::Not(::testing::Contains("transposed")));
}

TEST(Load, CountsTheBytesThatAStepReads) {
  WeightFootprint weights;
  weights.token_bytes = 1000;
  EXPECT_EQ(weights.step_bytes(8), 1000.0);
  // 400 bytes of everything else, and a quarter of 2,400 bytes of experts for each token.
  weights.expert_bytes = 2400;
  weights.active_share = 0.25;
  EXPECT_DOUBLE_EQ(weights.step_bytes(1), 1000.0);
  EXPECT_DOUBLE_EQ(weights.step_bytes(2), 400.0 + 2400.0 * (1.0 - 0.75 * 0.75));
  EXPECT_NEAR(weights.step_bytes(1000), 2800.0, 1e-6);
}

TEST(Footprint, HoldsTheWorkspacesOfDecoderAndBackend) {
  const auto backend = make_cpu_backend(2);
  const Shape& shape = shape_named("gpt-oss-20b");
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "gpt-oss"), shape.type, {});
  const ModelDescription model = describe_model(*checkpoint);
  const TensorPlan tensors = plan_weights(model.spec, *model.architecture, *checkpoint, *backend);
  const DecoderLimits limits = {.max_tokens = 256, .max_logit_rows = 4, .context = 4096};
  const Footprint all = model_footprint(model.spec, tensors, device_memory(*backend), limits);
  const Footprint decoder = model_footprint(model.spec, tensors, {}, limits);
  EXPECT_EQ(decoder.workspace, activation_bytes(model.spec, limits, DType::f32));
  // Each token's row of every chosen expert: gate and up, their product, and the result.
  const auto& mlp = std::get<MoeMlp>(model.spec.blocks[0].mlp);
  const auto row = static_cast<std::uint64_t>(3 * mlp.hidden + model.spec.width) * sizeof(float);
  EXPECT_GT(all.workspace, decoder.workspace + 256 * static_cast<std::uint64_t>(mlp.active) * row);
}

TEST(Footprint, SizesTheCacheForTheStepsAndBlocksOfTheEngine) {
  const auto backend = make_cpu_backend(1);
  const Shape& shape = shape_named("gpt-oss-20b");  // with windows, whose blocks outlive a step
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "gpt-oss"), shape.type, {});
  const ModelDescription model = describe_model(*checkpoint);
  const TensorPlan tensors = plan_weights(model.spec, *model.architecture, *checkpoint, *backend);
  for (const int step : {64, 2048}) {
    for (const int block : {16, 256}) {
      const Footprint footprint =
          model_footprint(model.spec, tensors, {}, {.max_tokens = step, .context = 8000},
                          {.sequences = 3, .block_size = block});
      const CachePlan plan =
          plan_cache(model.spec, CacheTypes{}, {.sequences = 3, .step_tokens = step, .block_size = block},
                     8000, std::size_t{1} << 50);
      EXPECT_EQ(footprint.cache, plan.bytes) << step << " tokens, blocks of " << block;
    }
  }
}

TEST(Footprint, CountsTheRowsOfALargeStepOnceForAllSequences) {
  const Shape& shape = shape_named("gpt-oss-20b");
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "gpt-oss"), shape.type, {});
  const ModelSpec spec = describe_model(*checkpoint).spec;
  const auto windowed_blocks = [&](int step, int sequences) {
    const CachePlan plan = plan_cache(spec, CacheTypes{}, {.sequences = sequences, .step_tokens = step}, 8192,
                                      std::size_t{1} << 50);
    int blocks = 0;
    for (const CacheGroup& group : plan.groups) blocks += group.window > 0 ? group.blocks : 0;
    return blocks;
  };
  EXPECT_EQ(windowed_blocks(512, 256), 256 * windowed_blocks(512, 1));
  EXPECT_EQ(windowed_blocks(2048, 256), windowed_blocks(512, 256) + (2 * 2048 - 512) / 32);
}

TEST(Footprint, TellsHowManyFullSequencesFitIntoTheCache) {
  const Shape& shape = shape_named("gpt-oss-20b");
  const auto checkpoint = random_checkpoint(parse_config(shape.config, "gpt-oss"), shape.type, {});
  const ModelDescription model = describe_model(*checkpoint);
  const auto plan = [&](std::size_t max_bytes) {
    return plan_cache(model.spec, CacheTypes{}, {.sequences = 8, .max_bytes = max_bytes}, 4096,
                      std::size_t{1} << 50);
  };
  const CachePlan all = plan(0);
  EXPECT_EQ(all.full_sequences, 8);
  const CachePlan half = plan(all.bytes / 2);
  EXPECT_EQ(half.full_sequences, 4);
  EXPECT_EQ(half.context, 4096);
  const CachePlan little = plan(all.bytes / 16);
  EXPECT_EQ(little.full_sequences, 1);
  EXPECT_LT(little.context, 4096);
}

TEST(Load, ReadsAPartInPiecesAsItReadsItWhole) {
  // [in, out] matrices of three experts, and rows in which two halves take turns.
  std::vector<std::byte> bytes(3 * 8 * 6 * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  for (const bool transposed : {false, true}) {
    PlannedPart part;
    part.names = {"experts"};
    part.tensors = {{.format = WeightFormat::bf16,
                     .shape = {3, 8, 6},
                     .source = memory_source(bytes),
                     .offset = 0,
                     .bytes = bytes.size()}};
    part.rows = transposed ? 6 : 8;
    part.experts = 3;
    part.transposed = transposed;
    const int cols = transposed ? 8 : 6;
    const WeightSource source = source_of(part, cols);
    std::vector<std::byte> whole(source.bytes());
    source.read(0, whole);
    if (transposed) {
      EXPECT_EQ(whole[0], bytes[0]);
      EXPECT_EQ(whole[2], bytes[12]) << "the second element of row 0 is the first of the second stored row";
    } else {
      EXPECT_EQ(whole, bytes);
    }
    for (std::int64_t at_once = 1; at_once <= source.all_rows(); ++at_once) {
      std::vector<std::byte> pieces(whole.size());
      for (std::int64_t row = 0; row < source.all_rows(); row += at_once) {
        const auto count = static_cast<std::size_t>(std::min(at_once, source.all_rows() - row));
        source.read(row, std::span(pieces).subspan(static_cast<std::size_t>(row) * source.row_bytes(),
                                                   count * source.row_bytes()));
      }
      EXPECT_EQ(pieces, whole) << at_once << " rows at once";
    }
  }
}

TEST(Load, RefusesSlotsOfOneShapeThatChangedPlaces) {
  const auto backend = make_cpu_backend(1);
  const EditedCheckpoint checkpoint;
  const ModelDescription model = describe_model(checkpoint);
  TensorPlan plan = plan_weights(model.spec, *model.architecture, checkpoint, *backend);
  EXPECT_NO_THROW(bind(model.spec, plan, {}, *backend));
  const auto find = [&](Slot slot, int layer) {
    return std::ranges::find_if(plan.slots, [&](const PlannedSlot& planned) {
      return planned.request.slot == slot && planned.request.layer == layer;
    });
  };
  const auto swapped = [&](auto a, auto b) {
    std::iter_swap(a, b);
    const Error error = caught_error([&] { bind(model.spec, plan, {}, *backend); });
    std::iter_swap(a, b);
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return std::string(error.what());
  };
  EXPECT_THAT(swapped(find(Slot::attention_norm, 0), find(Slot::mlp_norm, 0)),
              HasSubstr("the plan has MLP norm of layer 0, the model expects attention norm of layer 0"));
  EXPECT_THAT(swapped(find(Slot::qkv, 0), find(Slot::qkv, 1)),
              HasSubstr("the plan has Q, K, V of layer 1, the model expects Q, K, V of layer 0"));
}

TEST(Load, NamesEveryProblemAtOnce) {
  EditedCheckpoint checkpoint;
  checkpoint.remove("model.layers.1.mlp.up_proj.weight");
  checkpoint.reshape("model.layers.0.self_attn.v_proj.weight", {32, 16});
  checkpoint.add("model.layers.0.self_attn.extra.weight");
  EXPECT_THAT(
      refusal(checkpoint),
      AllOf(HasSubstr("model.layers.1.mlp.up_proj.weight: missing"),
            HasSubstr("model.layers.0.self_attn.v_proj.weight: expected [16, 32], found [32, 16]"),
            HasSubstr(
                "model.layers.0.self_attn.extra.weight: unexpected tensor, not used by this architecture")));
}

TEST(Load, AcceptsLeftoversThatMeanNothing) {
  EditedCheckpoint checkpoint;
  checkpoint.add("model.layers.0.self_attn.rotary_emb.inv_freq");
  const auto backend = make_cpu_backend(1);
  EXPECT_NO_THROW(load(checkpoint, *backend));
}

TEST(Load, SaysWhatAnUnsupportedArchitectureIs) {
  class Hybrid final : public Checkpoint {
   public:
    Container container() const override { return Container::safetensors; }
    std::string_view architecture() const override { return "granitemoehybrid"; }
    const Config& config() const override { return config_; }
    std::optional<StoredTensor> find(std::string_view) const override { return std::nullopt; }
    std::vector<std::string> names() const override { return {}; }

   private:
    Config config_ = parse_config("{}", "here/config.json");
  };
  EXPECT_THAT(refusal(Hybrid()),
              AllOf(HasSubstr("here/config.json"), HasSubstr("\"granitemoehybrid\" is not supported"),
                    HasSubstr("Mamba"), HasSubstr("gpt_oss"), HasSubstr("qwen3_moe")));
}

TEST(Load, RefusesKeysThatChangeTheMathematics) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "clip_qkv", "num_experts",
                          "rope_interleaved_pairs", "query_pre_attn_scalar", "alibi_bias_max"}) {
    const std::string config = with(key, "30.0");
    EXPECT_THAT(refusal(EditedCheckpoint(tiny_llama_config, config)), HasSubstr(key));
  }
}

TEST(Load, IgnoresKeysWithoutEffectAndReportsUnknownOnes) {
  std::string config = with("attn_logit_softcapping", "null");
  config = with("attention_dropout", "0.1", config);
  config = with("use_alibi", "false", config);
  config = with("colour_of_the_logo", "\"red\"", config);
  const EditedCheckpoint checkpoint(tiny_llama_config, config);
  const auto backend = make_cpu_backend(1);
  const LoadedModel model = load(checkpoint, *backend);
  ASSERT_EQ(model.report.notes.size(), 1u);
  EXPECT_THAT(model.report.notes[0], HasSubstr("colour_of_the_logo"));
}

TEST(Load, TakesMistralsWindowFromItsDefaultUnlessTheConfigSaysNull) {
  const auto window = [](const std::string& config) {
    const EditedCheckpoint checkpoint(config, config, "mistral");
    return describe_model(checkpoint).spec.blocks[0].attention.window;
  };
  EXPECT_EQ(window(std::string(tiny_llama_config)), 4096);
  EXPECT_EQ(window(with("sliding_window", "null")), 0);
  EXPECT_EQ(window(with("sliding_window", "16")), 16);
}

TEST(Load, RefusesContradictionsWithTheirNumbers) {
  const std::string three_groups = with("num_key_value_heads", "3");
  EXPECT_THAT(refusal(EditedCheckpoint(tiny_llama_config, three_groups)), HasSubstr("3 key/value heads"));
  const std::string many_layers = with("num_hidden_layers", "2000000000");
  EXPECT_THAT(refusal(EditedCheckpoint(tiny_llama_config, many_layers)), HasSubstr("num_hidden_layers"));
  const std::string odd_rope = with("partial_rotary_factor", "0.125");
  EXPECT_THAT(refusal(EditedCheckpoint(tiny_llama_config, odd_rope)), HasSubstr("rotated dimensions"));
}

TEST(Load, SurvivesEveryEdgeValueOfEveryKey) {
  for (const char* key : keys) {
    for (const char* edge : {"0", "1", "-1", "2147483647", "2147483648", "9007199254740993", "1e308", "0.5",
                             "true", "\"abc\"", "null", "[]", "[1, 2]"}) {
      const std::string config = with(key, edge);
      const auto backend = make_cpu_backend(1);
      try {
        const EditedCheckpoint checkpoint(tiny_llama_config, config);
        load(checkpoint, *backend);
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::internal) << key << " = " << edge << ": " << error.what();
        EXPECT_NE(std::string_view(error.what()), "");
      }
    }
  }
}

// A device whose kernels know one type of cache, and that must not be given weights for another.
class OneCacheType : public testing::ForwardingBackend {
 public:
  OneCacheType() : ForwardingBackend(make_cpu_backend(1)) {}
  std::optional<Advice> refuses_cache(const AttentionSpec& spec, CacheTypes types) const override {
    return Backend::refuses_cache(spec, types);
  }
  void load(std::span<Weight> to, std::span<const WeightSource> from) override {
    has_weights = true;
    ForwardingBackend::load(to, from);
  }
  bool has_weights = false;
};

LoadedModel load_with_cache(const Checkpoint& checkpoint, Backend& backend, std::string_view cache) {
  return load_model(checkpoint, backend,
                    {.max_tokens = 8,
                     .max_logit_rows = 1,
                     .context = 16,
                     .cache = parse_cache_choice(cache, "--cache-type")});
}

TEST(Load, RefusesTypesOfCacheThatTheDeviceLacksBeforeItReadsWeights) {
  OneCacheType device;
  const EditedCheckpoint checkpoint;
  for (const char* type : {"q8_0", "fp8", "f16", "bf16", "f32,f16", "q8_0,auto"}) {
    const Error error = caught_error([&] { load_with_cache(checkpoint, device, type); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr(std::string("a KV cache of type ") + type));
    EXPECT_THAT(error.advice().why, HasSubstr("in f32 only"));
    EXPECT_THAT(error.advice().next, HasSubstr("auto"));
    EXPECT_FALSE(device.has_weights);
  }
  for (const char* type : {"auto", "f32", "f32,auto"}) {
    EXPECT_EQ(load_with_cache(checkpoint, device, type).decoder->cache_types(),
              (CacheTypes{DType::f32, DType::f32}));
    EXPECT_TRUE(std::exchange(device.has_weights, false));
  }
}

TEST(Load, RefusesBlocksOfACacheThatAreLongerThanHeads) {
  const auto backend = make_cpu_backend(1);
  const EditedCheckpoint checkpoint;  // heads of 8
  for (const char* type : {"q8_0", "q8_0,f16", "f16,q8_0"}) {
    const Error error = caught_error([&] { load_with_cache(checkpoint, *backend, type); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.advice().why, "its blocks have 32 elements, and a head of this model has 8");
    EXPECT_EQ(error.advice().next, "use fp8, f16 or bf16");
  }
  EXPECT_NO_THROW(load_with_cache(checkpoint, *backend, "fp8,f16"));
}

// A tiny Llama with scales for an FP8 cache.
class ScaledCheckpoint final : public Checkpoint {
 public:
  void add(const std::string& name, std::vector<float> scales) {
    StoredTensor& tensor = scales_[name];
    tensor.format = WeightFormat::f32;
    tensor.shape = {static_cast<std::int64_t>(scales.size()), 1, 1};
    tensor.bytes = scales.size() * sizeof(float);
    const auto bytes = std::as_bytes(std::span(scales));
    tensor.source = memory_source({bytes.begin(), bytes.end()});
  }
  Container container() const override { return Container::safetensors; }
  std::string_view architecture() const override { return weights_.architecture(); }
  const Config& config() const override { return weights_.config(); }
  std::optional<StoredTensor> find(std::string_view name) const override { return weights_.find(name); }
  std::vector<std::string> names() const override { return weights_.names(); }
  std::optional<StoredTensor> find_cache_scale(std::string_view name) const override {
    const auto found = scales_.find(name);
    return found == scales_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  EditedCheckpoint weights_;
  std::map<std::string, StoredTensor, std::less<>> scales_;
};

// The scales of one layer, as the backend gets them.
std::vector<float> floats_of(const Matrix& scales) {
  const auto* values = reinterpret_cast<const float*>(scales.data);
  return scales ? std::vector<float>(values, values + scales.cols) : std::vector<float>();
}

TEST(Load, GivesAnFp8CacheTheScalesOfTheCheckpoint) {
  ScaledCheckpoint checkpoint;
  checkpoint.add("model.layers.0.self_attn.k_scale", {0.5f});
  checkpoint.add("model.layers.0.self_attn.v_proj.v_scale", {2.0f, 3.0f});
  checkpoint.add("model.layers.1.self_attn.kv_scale", {0.25f});
  const auto backend = make_cpu_backend(1);
  const LoadedModel model = load_with_cache(checkpoint, *backend, "fp8");
  const std::vector<BlockWeights>& blocks = model.decoder->weights().blocks;
  EXPECT_EQ(floats_of(blocks[0].attention.key_scales), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(floats_of(blocks[0].attention.value_scales), (std::vector<float>{2.0f, 3.0f}));
  EXPECT_EQ(floats_of(blocks[1].attention.key_scales), (std::vector<float>{0.25f, 0.25f}));
  EXPECT_EQ(floats_of(blocks[1].attention.value_scales), (std::vector<float>{0.25f, 0.25f}));
  const LoadedModel other = load_with_cache(checkpoint, *backend, "f16");
  EXPECT_FALSE(other.decoder->weights().blocks[0].attention.key_scales);
}

TEST(Load, RefusesScalesOfACacheThatCannotBe) {
  const auto backend = make_cpu_backend(1);
  for (const std::vector<float>& scales :
       {std::vector<float>{0.0f}, {-1.0f}, {NAN}, {INFINITY}, {1.0f, 1.0f, 1.0f}, {}}) {
    ScaledCheckpoint checkpoint;
    checkpoint.add("model.layers.1.self_attn.v_scale", scales);
    const Error error = caught_error([&] { load_with_cache(checkpoint, *backend, "auto,fp8"); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("model.layers.1.self_attn.v_scale"));
    EXPECT_NO_THROW(load_with_cache(checkpoint, *backend, "bf16")) << "no other cache has scales";
  }
}

TEST(Load, RefusesALongerContextThanTheModelHas) {
  const EditedCheckpoint checkpoint;
  const auto backend = make_cpu_backend(1);
  const Error error = caught_error([&] { load_model(checkpoint, *backend, {.context = 65}); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("65"), HasSubstr("64")));
}

}  // namespace
}  // namespace inferno
