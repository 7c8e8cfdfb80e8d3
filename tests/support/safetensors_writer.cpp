#include "support/safetensors_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

namespace inferno {
namespace {

std::size_t element_bytes(const std::string& dtype) {
  static const std::map<std::string, std::size_t> sizes = {
      {"F64", 8},     {"I64", 8},     {"U64", 8},     {"F32", 4}, {"I32", 4}, {"U32", 4},
      {"F16", 2},     {"BF16", 2},    {"I16", 2},     {"U16", 2}, {"I8", 1},  {"U8", 1},
      {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"BOOL", 1}};
  return sizes.at(dtype);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

SafetensorsData patterned_tensor(std::string name, std::string dtype, std::vector<std::int64_t> shape) {
  std::size_t size = element_bytes(dtype);
  for (const std::int64_t dimension : shape) size *= static_cast<std::size_t>(dimension);
  std::size_t seed = 1;
  for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  SafetensorsData tensor = {std::move(name), std::move(dtype), std::move(shape),
                            std::vector<std::byte>(size)};
  for (std::size_t i = 0; i < size; ++i) tensor.bytes[i] = static_cast<std::byte>((seed + i * 7) % 251);
  return tensor;
}

SafetensorsData f32_tensor(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {std::move(name), "F32", std::move(shape), {bytes.begin(), bytes.end()}};
}

std::string safetensors_header(std::span<const SafetensorsData> tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::size_t offset = 0;
  for (const SafetensorsData& tensor : tensors) {
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                          tensor.dtype, fmt::join(tensor.shape, ","), offset, offset + tensor.bytes.size());
    offset += tensor.bytes.size();
  }
  return header + "}";
}

std::vector<std::byte> safetensors_image(std::string_view header, std::span<const std::byte> data) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> image(sizeof(length) + header.size());
  std::memcpy(image.data(), &length, sizeof(length));
  std::memcpy(image.data() + sizeof(length), header.data(), header.size());
  image.insert(image.end(), data.begin(), data.end());
  return image;
}

std::vector<std::byte> safetensors_image(std::span<const SafetensorsData> tensors) {
  std::vector<std::byte> data;
  for (const SafetensorsData& tensor : tensors)
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  return safetensors_image(safetensors_header(tensors), data);
}

void write_safetensors(const std::filesystem::path& file, std::span<const SafetensorsData> tensors) {
  const std::vector<std::byte> image = safetensors_image(tensors);
  write_file(file, {reinterpret_cast<const char*>(image.data()), image.size()});
}

std::string shard_name(std::size_t number, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

void write_sharded_safetensors(const std::filesystem::path& directory,
                               std::span<const std::vector<SafetensorsData>> shards) {
  std::string map;
  std::size_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i + 1, shards.size());
    write_safetensors(directory / name, shards[i]);
    for (const SafetensorsData& tensor : shards[i]) {
      map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", tensor.name, name);
      total += tensor.bytes.size();
    }
  }
  write_file(directory / "model.safetensors.index.json",
             fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{{}}}}})", total, map));
}

}  // namespace inferno
