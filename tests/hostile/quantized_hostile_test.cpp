// Sets of quantized tensors that do not belong together: each tensor missing, of another type, turned,
// doubled, cut or empty. Every such file is valid safetensors. It loads, or is refused by name.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "checkpoint/open_checkpoint.h"
#include "hostile/rule.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

struct Seed {
  std::string name, settings;
  std::vector<SafetensorsData> tensors;
};

SafetensorsData part(std::string name, std::string dtype, std::vector<std::int64_t> shape) {
  return patterned_tensor("x." + std::move(name), std::move(dtype), std::move(shape));
}

SafetensorsData weight_shape(std::int64_t rows, std::int64_t cols) {
  SafetensorsData data = part("weight_shape", "I64", {2});
  const std::int64_t sizes[] = {rows, cols};
  std::memcpy(data.bytes.data(), sizes, sizeof(sizes));
  return data;
}

SafetensorsData quant_state() {
  const std::string text = R"({"quant_type": "nf4", "blocksize": 64, "shape": [4, 64]})";
  SafetensorsData data =
      part("weight.quant_state.bitsandbytes__nf4", "U8", {static_cast<std::int64_t>(text.size())});
  std::memcpy(data.bytes.data(), text.data(), text.size());
  return data;
}

std::string compressed(const std::string& format, const std::string& weights) {
  return R"("quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"g": {"targets": ["Linear"], "weights": )" + weights + "}}";
}

std::vector<Seed> seeds() {
  return {
      {"gptq",
       R"("quant_method": "gptq", "bits": 4, "group_size": 32)",
       {part("qweight", "I32", {8, 8}), part("qzeros", "I32", {2, 1}), part("scales", "F16", {2, 8}),
        part("g_idx", "I32", {64})}},
      {"awq",
       R"("quant_method": "awq", "bits": 4, "group_size": 32)",
       {part("qweight", "I32", {64, 1}), part("qzeros", "I32", {2, 1}), part("scales", "F16", {2, 8})}},
      {"packed",
       compressed("pack-quantized", R"({"num_bits": 4, "type": "int"})"),
       {part("weight_packed", "I32", {8, 8}), part("weight_scale", "BF16", {8, 2}),
        part("weight_zero_point", "I32", {1, 2}), part("weight_g_idx", "I32", {64}), weight_shape(8, 64)}},
      {"bytes",
       compressed("int-quantized", R"({"num_bits": 8, "type": "int"})"),
       {part("weight", "I8", {4, 64}), part("weight_scale", "F32", {4, 1}),
        part("weight_zero_point", "I8", {4, 1})}},
      {"fp8",
       R"("quant_method": "fp8", "weight_block_size": [2, 32])",
       {part("weight", "F8_E4M3", {4, 64}), part("weight_scale_inv", "F32", {2, 2})}},
      {"nvfp4",
       compressed("nvfp4-pack-quantized", R"({"num_bits": 4, "type": "float"})"),
       {part("weight_packed", "U8", {4, 32}), part("weight_scale", "F8_E4M3", {4, 4}),
        part("weight_global_scale", "F32", {1})}},
      {"mxfp4",
       compressed("mxfp4-pack-quantized", R"({"num_bits": 4, "type": "float"})"),
       {part("weight_packed", "U8", {4, 32}), part("weight_scale", "U8", {4, 2})}},
      {"nf4",
       R"("load_in_4bit": true)",
       {part("weight", "U8", {128, 1}), part("weight.absmax", "U8", {4}),
        part("weight.quant_map", "F32", {16}), part("weight.nested_absmax", "F32", {1}),
        part("weight.nested_quant_map", "F32", {256}), quant_state()}},
  };
}

// The tensor in other types and shapes, with as many bytes as these need.
std::vector<SafetensorsData> variants(const SafetensorsData& tensor) {
  std::vector<SafetensorsData> out;
  const auto add = [&](const std::string& type, std::vector<std::int64_t> shape) {
    out.push_back(patterned_tensor(tensor.name, type, std::move(shape)));
  };
  for (const char* type : {"F32", "F16", "BF16", "F8_E4M3", "F8_E8M0", "I64", "I32", "I8", "U8", "BOOL"}) {
    add(type, tensor.shape);
  }
  std::vector<std::int64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
  add(tensor.dtype, shape);
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, tensor.shape[i] - 1,
                                    tensor.shape[i] + 1, 2 * tensor.shape[i], std::int64_t{4096}}) {
      shape = tensor.shape;
      shape[i] = size;
      add(tensor.dtype, shape);
    }
  }
  shape = tensor.shape;
  shape.push_back(1);
  add(tensor.dtype, shape);
  add(tensor.dtype, {});
  return out;
}

void load(const std::filesystem::path& directory) {
  const auto checkpoint = open_checkpoint(directory);
  for (const std::string& name : checkpoint->names()) {
    const auto tensor = checkpoint->find(name);
    std::vector<std::byte> bytes(tensor->bytes);
    tensor->read(0, bytes);
  }
}

TEST(HostileQuantized, SetsThatDoNotBelongTogether) {
  const TemporaryDirectory directory;
  Sweep sweep;
  for (const Seed& seed : seeds()) {
    directory.write("config.json",
                    R"({"model_type": "llama", "quantization_config": {)" + seed.settings + "}}");
    const auto judge_tensors = [&](const std::string& variant, const std::vector<SafetensorsData>& tensors) {
      write_safetensors(directory.path() / "model.safetensors", tensors);
      const std::string name = directory.path().native();
      sweep.add(seed.name + " " + variant,
                {name, std::filesystem::file_size(directory.path() / "model.safetensors"),
                 [&] { load(directory.path()); }});
    };
    judge_tensors("as it is", seed.tensors);
    for (std::size_t i = 0; i < seed.tensors.size(); ++i) {
      std::vector<SafetensorsData> tensors = seed.tensors;
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
      judge_tensors("without " + seed.tensors[i].name, tensors);
      for (const SafetensorsData& other : variants(seed.tensors[i])) {
        tensors = seed.tensors;
        tensors[i] = other;
        judge_tensors(other.name + " as " + other.dtype, tensors);
      }
    }
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 100u);
}

}  // namespace
}  // namespace inferno
