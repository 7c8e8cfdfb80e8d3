// M2: safetensors files. Seeds with one error each, then three mechanical sweeps over a valid file.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/open_checkpoint.h"
#include "checkpoint/safetensors/header.h"
#include "hostile/rule.h"
#include "hostile/safetensors_seeds.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

void expect_verdicts(const std::vector<SafetensorsSeed>& seeds) {
  const TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type": "llama"})");
  for (const SafetensorsSeed& seed : seeds) {
    const std::vector<std::byte> bytes = seed.make();
    const std::filesystem::path path = directory.write("model.safetensors", bytes);
    const Verdict verdict = judge({path.native(), bytes.size(), [&] { open_checkpoint(directory.path()); }});
    EXPECT_EQ(verdict.broken, "") << seed.name << ": " << verdict.message;
    EXPECT_EQ(verdict.refused, seed.refused) << seed.name << ": " << verdict.message;
  }
}

std::vector<SafetensorsData> valid_tensors() {
  return {patterned_tensor("model.embed_tokens.weight", "BF16", {16, 8}),
          patterned_tensor("model.norm.weight", "F32", {8}),
          patterned_tensor("x_blocks", "U8", {2, 2, 1, 16}), patterned_tensor("x_scales", "U8", {2, 2, 1})};
}

void add(Sweep& sweep, const std::string& variant, const std::vector<std::byte>& bytes) {
  const auto source = memory_source(bytes, "swept.safetensors");
  sweep.add(variant, {"swept.safetensors", bytes.size(),
                      [&] { read_safetensors_header(*source, "swept.safetensors"); }});
}

TEST(HostileSafetensors, HasAtLeastFiftySeeds) {
  EXPECT_GE(safetensors_file_seeds().size() + safetensors_tensor_seeds().size(), 50u);
}

TEST(HostileSafetensors, FileSeeds) {
  expect_verdicts(safetensors_file_seeds());
}
TEST(HostileSafetensors, TensorSeeds) {
  expect_verdicts(safetensors_tensor_seeds());
}

TEST(HostileSafetensors, CutAtEveryByteOfTheHeaderAndInTheData) {
  const std::vector<std::byte> image = safetensors_image(valid_tensors());
  const std::size_t header_bytes = 8 + safetensors_header(valid_tensors()).size();
  Sweep sweep;
  std::mt19937 random(1);
  for (std::size_t i = 0; i < header_bytes + 200; ++i) {
    const std::size_t size = i < header_bytes ? i : header_bytes + random() % (image.size() - header_bytes);
    add(sweep, "cut to " + std::to_string(size),
        {image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_EQ(sweep.loaded(), 0u);
}

TEST(HostileSafetensors, EveryBitOfTheFirstFourKibibytesFlipped) {
  std::vector<std::byte> bytes = safetensors_image(valid_tensors());
  Sweep sweep;
  for (std::size_t bit = 0; bit < std::min<std::size_t>(bytes.size(), 4096) * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    add(sweep, "bit " + std::to_string(bit), bytes);
    bytes[bit / 8] ^= mask;
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 1000u);
}

// Replaces each number in the header's text, and the header's length, by each edge value.
TEST(HostileSafetensors, EveryFieldAtEveryEdge) {
  const std::string header = safetensors_header(valid_tensors());
  std::vector<std::byte> data;
  for (const SafetensorsData& tensor : valid_tensors())
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  Sweep sweep;
  for (std::size_t at = header.find_first_of("[,"); at != std::string::npos;
       at = header.find_first_of("[,", at + 1)) {
    const std::size_t end = header.find_first_not_of("0123456789", at + 1);
    if (end == at + 1) continue;
    const std::string digits = header.substr(at + 1, end - at - 1);
    for (const std::uint64_t value : edge_values(std::stoull(digits))) {
      const std::string changed = header.substr(0, at + 1) + std::to_string(value) + header.substr(end);
      add(sweep, std::to_string(at) + " = " + std::to_string(value), safetensors_image(changed, data));
    }
  }
  for (const std::uint64_t value : edge_values(header.size())) {
    std::vector<std::byte> image = safetensors_image(header, data);
    std::memcpy(image.data(), &value, sizeof(value));
    add(sweep, "length = " + std::to_string(value), image);
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 200u);
}

}  // namespace
}  // namespace inferno
