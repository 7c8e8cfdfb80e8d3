// Writes the files that the fuzz targets start from: write_seeds DIRECTORY makes one folder per target.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"

namespace {

using namespace inferno;

class Corpus {
 public:
  Corpus(const std::filesystem::path& root, const char* target) : folder_(root / target) {
    std::filesystem::create_directories(folder_);
  }
  void add(std::span<const std::byte> bytes) {
    std::ofstream file(folder_ / ("seed" + std::to_string(count_++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

void write_gguf(const std::filesystem::path& root, const char* target) {
  Corpus corpus(root, target);
  corpus.add(tiny_llama_gguf().image().bytes);
  corpus.add(GgufWriter().set("general.architecture", std::string("gpt2")).image().bytes);
  GgufWriter types;
  types.set("general.architecture", std::string("gpt-oss"))
      .set("gpt-oss.block_count", std::uint32_t{2})
      .set("gpt-oss.rope.scaling.type", std::string("yarn"))
      .set("general.alignment", std::uint32_t{8})
      .set("flags", std::vector<bool>{true, false})
      .set("scores", std::vector<float>{0.5f, 1.0f})
      .set("wide", std::uint64_t{7})
      .set("double", 0.25)
      .align(8);
  for (const std::uint32_t type : {0u,  1u,  2u,  3u,  6u,  7u,  8u,  10u, 11u, 12u, 13u, 14u,
                                   20u, 21u, 23u, 24u, 25u, 26u, 27u, 28u, 30u, 35u, 39u}) {
    types.tensor("t" + std::to_string(type), type, {256});
  }
  corpus.add(types.image().bytes);
  GgufWriter ropes;
  ropes.set("general.architecture", std::string("phi3"))
      .set("phi3.embedding_length", std::uint32_t{64})
      .set("phi3.attention.head_count", std::uint32_t{2})
      .set("phi3.rope.dimension_count", std::uint32_t{16})
      .set("phi3.rope.scaling.attn_factor", 1.19f)
      .tensor("rope_factors_long.weight", 0, {4})
      .tensor("rope_factors_short.weight", 0, {4})
      .tensor("rope_freqs.weight", 0, {4});
  corpus.add(ropes.image().bytes);
}

void write_safetensors_seeds(const std::filesystem::path& root) {
  Corpus corpus(root, "safetensors_fuzz");
  corpus.add(safetensors_image(
      std::vector{patterned_tensor("a.weight", "BF16", {2, 3}), patterned_tensor("b", "F32", {})}));
  corpus.add(safetensors_image(std::vector{patterned_tensor("x_blocks", "U8", {1, 1, 1, 16}),
                                           patterned_tensor("x_scales", "U8", {1, 1, 1})}));
  corpus.add(safetensors_image("{}", {}));
}

void write_json_seeds(const std::filesystem::path& root) {
  Corpus index(root, "safetensors_index_fuzz");
  index.add(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"x.safetensors"}})");
  Corpus config(root, "config_fuzz");
  config.add(
      R"({"model_type":"llama","hidden_size":64,"rms_norm_eps":1e-05,"tie_word_embeddings":false,"x":null,
    "rope_scaling":{"type":"yarn","factor":4.0,"rope_theta":1e4},"layer_types":["a","b"],"mlp_only_layers":[]})");
  config.add(
      R"({"rope_parameters":{"rope_type":"default","rope_theta":1,"original_max_position_embeddings":4},"l":[{"a":[1]}]})");
  config.add(
      R"({"eos_token_id":[1,2],"bos_token_id":1,"temperature":0.6,"top_k":20,"top_p":0.9,"repetition_penalty":1.1})");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: write_seeds DIRECTORY\n", stderr);
    return 2;
  }
  write_gguf(arguments[1], "gguf_header_fuzz");
  write_gguf(arguments[1], "gguf_decode_fuzz");
  write_safetensors_seeds(arguments[1]);
  write_json_seeds(arguments[1]);
}
