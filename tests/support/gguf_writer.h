// Writes GGUF files from descriptions in memory: valid files, and valid files with single fields corrupted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace inferno {

using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                               std::int32_t, std::uint64_t, std::int64_t, float, double, bool, std::string,
                               std::vector<std::string>, std::vector<std::int32_t>,
                               std::vector<std::uint32_t>, std::vector<float>, std::vector<bool>>;

// A length, count, type or offset, and its position in the file.
struct GgufField {
  std::string name;  // "tensors", "keys", "key 3 length", "tensor 0 dimension 1", "tensor 2 offset"
  std::size_t offset = 0;
  std::size_t width = 0;  // 4 or 8 bytes
};

struct GgufImage {
  std::vector<std::byte> bytes;
  std::vector<GgufField> fields;
  std::size_t header_bytes = 0;  // up to the padding before the data

  // Overwrites a field; std::out_of_range if no field has that name.
  void patch(std::string_view field, std::uint64_t value);
  std::uint64_t value(const GgufField& field) const;
};

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  GgufWriter& set(std::string key, GgufValue value);
  // A value with any type number, followed by arbitrary bytes.
  GgufWriter& set_raw(std::string key, std::uint32_t type, std::vector<std::byte> bytes);

  // `type` is ggml's number; `dimensions` are in ggml's order, innermost first. The second form fills in
  // bytes.
  GgufWriter& tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                     std::vector<std::byte> bytes);
  GgufWriter& tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dimensions);

  // The padding between tensors; set "general.alignment" as well if it is not 32.
  GgufWriter& align(std::size_t alignment);

  GgufImage image() const;
  void write(const std::filesystem::path& file) const;

 private:
  struct Key {
    std::string name;
    std::uint32_t type;
    std::vector<std::byte> bytes;
    std::vector<GgufField> fields;  // inside bytes
  };
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dimensions;
    std::vector<std::byte> bytes;
  };

  std::uint32_t version_;
  std::size_t alignment_ = 32;
  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
};

// A small model of the Llama family with `layers` layers of f32 weights, ready to be changed.
GgufWriter tiny_llama_gguf(std::uint32_t layers = 1, std::uint32_t version = 3);

// Writes `parts` as "stem-0000i-of-0000N.gguf", with the keys of a split file.
void write_split_gguf(const std::filesystem::path& directory, std::string_view stem,
                      std::vector<GgufWriter> parts, std::size_t tensors_in_all);

}  // namespace inferno
