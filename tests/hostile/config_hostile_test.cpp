// M3: config.json and generation_config.json. Errors that only the model layer detects (heads that do not
// divide, shapes that contradict the config, unknown architectures) are tested where models are bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include <random>

#include "checkpoint/config_json.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/open_checkpoint.h"
#include "hostile/rule.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

constexpr std::string_view valid_config = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 512,
  "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "sliding_window": null, "tie_word_embeddings": false,
  "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0},
  "layer_types": ["full_attention", "full_attention"], "eos_token_id": [1, 2]})";

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

struct Seed {
  std::string name;
  bool loads;
  std::string text;
};

// Texts that no config.json may have.
std::vector<Seed> document_seeds() {
  return {
      {"valid", true, std::string(valid_config)},
      {"valid with a byte order mark", true, "\xEF\xBB\xBF" + std::string(valid_config)},
      {"valid and small", true, R"({"model_type": "llama"})"},
      {"no bytes", false, ""},
      {"a space", false, " "},
      {"a list", false, "[]"},
      {"a number", false, "1"},
      {"a string", false, R"("model_type")"},
      {"null", false, "null"},
      {"cut in a key", false, R"({"model_ty)"},
      {"cut in a value", false, R"({"model_type": "lla)"},
      {"two documents", false, R"({"model_type": "llama"}{})"},
      {"a comma too many", false, R"({"model_type": "llama",})"},
      {"single quotes", false, "{'model_type': 'llama'}"},
      {"a comment", false, R"({"model_type": "llama" /* yes */})"},
      {"NaN", false, R"({"model_type": "llama", "x": NaN})"},
      {"Infinity", false, R"({"model_type": "llama", "x": Infinity})"},
      {"1e999", false, R"({"model_type": "llama", "x": 1e999})"},
      {"a number of 100,000 digits", false,
       R"({"model_type": "llama", "x": 1)" + std::string(100000, '0') + "}"},
      {"a leading zero", false, R"({"model_type": "llama", "x": 01})"},
      {"broken UTF-8", false, "{\"model_type\": \"\xC3(\"}"},
      {"a lone surrogate", false, R"({"model_type": "\ud800"})"},
      {"a control character", false, "{\"model_type\": \"a\x01\"}"},
      {"zero bytes at the end", false, R"({"model_type": "llama"})" + std::string(8, '\0')},
      {"objects 100,000 deep", false, repeated(R"({"a":)", 100000)},
      {"lists 100,000 deep", false, R"({"a":)" + std::string(100000, '[')},
      {"lists 100,000 deep and closed", false,
       R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}"},
      {"33 levels", false, repeated(R"({"a":)", 33) + "1" + std::string(33, '}')},
      {"32 levels", true,
       R"({"model_type": "llama", "a":)" + repeated(R"({"a":)", 31) + "1" + std::string(32, '}')},
      {"a key given twice", false, R"({"model_type": "llama", "model_type": "llama"})"},
      {"a key given twice, once as null", false, R"({"model_type": "llama", "x": null, "x": 1})"},
      {"a key given twice through a dot", false, R"({"model_type": "llama", "a": {"b": 1}, "a.b": 1})"},
      {"a key of 600 bytes", false, R"({"model_type": "llama", ")" + std::string(600, 'k') + R"(": 1})"},
      {"a long path to every value", false, repeated("{\"" + std::string(100, 'k') + "\":", 10)},
      {"no model_type", false, "{}"},
      {"model_type of null", false, R"({"model_type": null})"},
      {"model_type without letters", false, R"({"model_type": ""})"},
      {"model_type as a number", false, R"({"model_type": 1})"},
      {"model_type as a list", false, R"({"model_type": ["llama"]})"},
      {"model_type as an object", false, R"({"model_type": {"a": "llama"}})"},
      {"two kinds of rope scaling", false,
       R"({"model_type": "llama", "rope_scaling": {"type": "a", "rope_type": "b"}})"},
      {"two values of rope_theta", false,
       R"({"model_type": "llama", "rope_theta": 1, "rope_scaling": {"rope_theta": 2}})"},
  };
}

std::vector<Seed> quantization_seeds() {
  return {
      {"quantized with awq, no tensor is", true,
       R"({"model_type": "llama", "quantization_config": {"quant_method": "awq"}})"},
      {"quantized with hqq", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": "hqq"}})"},
      {"a quantization that is a list", false, R"({"model_type": "llama", "quantization_config": [1]})"},
      {"a group that is a number", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": "compressed-tensors",
           "config_groups": {"g": 1}}})"},
      {"a target that is a number", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": "compressed-tensors",
           "config_groups": {"g": {"targets": [1], "weights": {"num_bits": 4, "type": "int"}}}}})"},
      {"bits beyond 32 bits", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": "gptq", "bits": 4294967300}})"},
      {"quantized with a number", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": 4}})"},
      {"quantized with a list", false,
       R"({"model_type": "llama", "quantization_config": {"quant_method": [{}]}})"},
      {"quantized without a method", false, R"({"model_type": "llama", "quantization_config": {"bits": 4}})"},
  };
}

TEST(HostileConfig, DocumentSeeds) {
  const TemporaryDirectory directory;
  write_safetensors(directory.path() / "model.safetensors", std::vector{patterned_tensor("w", "F32", {1})});
  std::vector<Seed> seeds = document_seeds();
  std::ranges::copy(quantization_seeds(), std::back_inserter(seeds));
  for (const Seed& seed : seeds) {
    const std::filesystem::path path = directory.write("config.json", seed.text);
    const Verdict verdict =
        judge({path.native(), seed.text.size(), [&] { open_checkpoint(directory.path()); }});
    EXPECT_EQ(verdict.broken, "") << seed.name << ": " << verdict.message;
    EXPECT_EQ(!verdict.refused, seed.loads) << seed.name << ": " << verdict.message;
  }
}

// Each number used in arithmetic, replaced by an invalid size.
TEST(HostileConfig, EveryFieldRefusesWhatIsNoSize) {
  const std::vector<std::string_view> fields = {"hidden_size",
                                                "num_attention_heads",
                                                "num_key_value_heads",
                                                "head_dim",
                                                "intermediate_size",
                                                "num_hidden_layers",
                                                "vocab_size",
                                                "max_position_embeddings",
                                                "num_local_experts",
                                                "num_experts_per_tok",
                                                "moe_intermediate_size",
                                                "n_embd",
                                                "n_head",
                                                "n_layer",
                                                "n_positions"};
  const std::vector<std::string_view> values = {"0",
                                                "-1",
                                                "2147483648",
                                                "4294967296",
                                                "9223372036854775807",
                                                "18446744073709551616",
                                                "1e308",
                                                "0.5",
                                                "1e-300",
                                                "\"64\"",
                                                "true",
                                                "[64]",
                                                "[]",
                                                "[{}]",
                                                "{}",
                                                "null"};
  std::size_t tried = 0;
  for (const std::string_view field : fields) {
    for (const std::string_view value : values) {
      const std::string text = "{\"" + std::string(field) + "\": " + std::string(value) + "}";
      const auto read = [&] { parse_config(text, "config.json").positive(field); };
      const Verdict verdict = judge({"config.json", text.size(), read});
      EXPECT_EQ(verdict.broken, "") << text;
      EXPECT_EQ(verdict.refused, ErrorKind::corrupt) << text;
      ++tried;
    }
  }
  EXPECT_GE(tried + document_seeds().size(), 70u);
}

TEST(HostileConfig, GenerationSeeds) {
  const std::vector<std::string_view> fields = {
      "eos_token_id", "bos_token_id", "pad_token_id", "temperature", "top_k", "top_p", "repetition_penalty"};
  const std::vector<std::string_view> values = {"-2",   "2147483648", "1e308",      "\"1\"",
                                                "true", "[[1]]",      "[1, \"a\"]", "[{}]"};
  const TemporaryDirectory directory;
  for (const std::string_view field : fields) {
    for (const std::string_view value : values) {
      // Only a probability has an upper limit.
      if (value == "2147483648" && (field == "temperature" || field == "repetition_penalty")) continue;
      const std::string text = "{\"" + std::string(field) + "\": " + std::string(value) + "}";
      const std::filesystem::path path = directory.write("generation_config.json", text);
      const Verdict verdict =
          judge({path.native(), text.size(), [&] { read_generation_config(directory.path()); }});
      EXPECT_EQ(verdict.broken, "") << text << verdict.message;
      EXPECT_EQ(verdict.refused, ErrorKind::corrupt) << text;
    }
  }
}

TEST(HostileConfig, CutAtEveryByte) {
  Sweep sweep;
  for (std::size_t size = 0; size < valid_config.size(); ++size) {
    const std::string_view text = valid_config.substr(0, size);
    sweep.add("cut to " + std::to_string(size),
              {"config.json", size, [&] { parse_config(text, "config.json"); }});
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_EQ(sweep.loaded(), 0u);
}

TEST(HostileConfig, EveryBitFlipped) {
  std::string text(valid_config);
  Sweep sweep;
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1u << (bit % 8));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    sweep.add("bit " + std::to_string(bit),
              {"config.json", text.size(), [&] { generation_config(parse_config(text, "config.json")); }});
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 1000u);
}

TEST(HostileConfig, EveryNumberAtEveryEdge) {
  const std::string text(valid_config);
  Sweep sweep;
  for (std::size_t at = text.find_first_of("0123456789"); at != std::string::npos;) {
    const std::size_t end = text.find_first_not_of("0123456789", at);
    for (const std::uint64_t value : edge_values(1)) {
      const std::string changed = text.substr(0, at) + std::to_string(value) + text.substr(end);
      sweep.add(changed, {"config.json", changed.size(), [&] {
                            const Config config = parse_config(changed, "config.json");
                            for (const char* key : {"hidden_size", "vocab_size", "head_dim"})
                              config.positive(key);
                            generation_config(config);
                          }});
    }
    at = text.find_first_of("0123456789", end);
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 20u);
}

}  // namespace
}  // namespace inferno
