// Writes safetensors files from descriptions in memory: valid files, and files with an arbitrary header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

struct SafetensorsData {
  std::string name;
  std::string dtype;                // as the file spells it: "F32", "U8"
  std::vector<std::int64_t> shape;  // outermost first
  std::vector<std::byte> bytes;     // the size must match dtype and shape
};

// Bytes that differ between tensors, for tests that only check offset and size.
SafetensorsData patterned_tensor(std::string name, std::string dtype, std::vector<std::int64_t> shape);
SafetensorsData f32_tensor(std::string name, std::vector<std::int64_t> shape, std::span<const float> values);

// The JSON header of a valid file.
std::string safetensors_header(std::span<const SafetensorsData> tensors);

// Any header before any data, with the correct header length.
std::vector<std::byte> safetensors_image(std::string_view header, std::span<const std::byte> data);
std::vector<std::byte> safetensors_image(std::span<const SafetensorsData> tensors);

void write_safetensors(const std::filesystem::path& file, std::span<const SafetensorsData> tensors);

// Writes model-00001-of-0000N.safetensors and their index.
void write_sharded_safetensors(const std::filesystem::path& directory,
                               std::span<const std::vector<SafetensorsData>> shards);
std::string shard_name(std::size_t number, std::size_t count);  // counted from 1

}  // namespace inferno
