#include "support/gguf_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace inferno {
namespace {

template <class T>
void append(std::vector<std::byte>& to, T value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + sizeof(value));
}

void append_text(std::vector<std::byte>& to, std::string_view text) {
  append(to, std::uint64_t{text.size()});
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  to.insert(to.end(), from, from + text.size());
}

// GGUF's numbers of value types, in the order of GgufValue's scalars.
template <class T>
constexpr std::uint32_t type_number() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return 0;
  if constexpr (std::is_same_v<T, std::int8_t>) return 1;
  if constexpr (std::is_same_v<T, std::uint16_t>) return 2;
  if constexpr (std::is_same_v<T, std::int16_t>) return 3;
  if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
  if constexpr (std::is_same_v<T, std::int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::string>) return 8;
  if constexpr (std::is_same_v<T, std::uint64_t>) return 10;
  if constexpr (std::is_same_v<T, std::int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
}

constexpr std::uint32_t array_type = 9;

struct Encoded {
  std::uint32_t type = 0;
  std::vector<std::byte> bytes;
  std::vector<GgufField> fields;
};

template <class T>
void append_element(Encoded& to, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    to.fields.push_back({"string length", to.bytes.size(), 8});
    append_text(to.bytes, value);
  } else {
    append(to.bytes, value);
  }
}

template <class T>
Encoded encode(const T& value) {
  Encoded result;
  result.type = type_number<T>();
  append_element(result, value);
  return result;
}

template <class T>
Encoded encode(const std::vector<T>& values) {
  Encoded result;
  result.type = array_type;
  result.fields.push_back({"element type", 0, 4});
  append(result.bytes, type_number<T>());
  result.fields.push_back({"elements", result.bytes.size(), 8});
  append(result.bytes, std::uint64_t{values.size()});
  for (const T& value : values) append_element<T>(result, value);
  return result;
}

// Elements and bytes of a block, for the types that tests write.
std::pair<std::uint64_t, std::uint64_t> block_of(std::uint32_t type) {
  static const std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> blocks = {
      {0, {1, 4}},      {1, {1, 2}},      {2, {32, 18}},   {3, {32, 20}},    {6, {32, 22}},
      {7, {32, 24}},    {8, {32, 34}},    {10, {256, 84}}, {11, {256, 110}}, {12, {256, 144}},
      {13, {256, 176}}, {14, {256, 210}}, {20, {32, 18}},  {21, {256, 110}}, {23, {256, 136}},
      {24, {1, 1}},     {25, {1, 2}},     {26, {1, 4}},    {27, {1, 8}},     {28, {1, 8}},
      {30, {1, 2}},     {35, {256, 66}},  {39, {32, 17}}};
  const auto found = blocks.find(type);
  return found == blocks.end() ? std::pair<std::uint64_t, std::uint64_t>{1, 1} : found->second;
}

}  // namespace

void GgufImage::patch(std::string_view field, std::uint64_t value) {
  for (const GgufField& known : fields) {
    if (known.name == field) {
      std::memcpy(bytes.data() + known.offset, &value, known.width);
      return;
    }
  }
  throw std::out_of_range("no field " + std::string(field));
}

std::uint64_t GgufImage::value(const GgufField& field) const {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + field.offset, field.width);
  return value;
}

GgufWriter& GgufWriter::set(std::string key, GgufValue value) {
  Encoded encoded = std::visit([](const auto& held) { return encode(held); }, value);
  std::erase_if(keys_, [&](const Key& known) { return known.name == key; });
  keys_.push_back({std::move(key), encoded.type, std::move(encoded.bytes), std::move(encoded.fields)});
  return *this;
}

GgufWriter& GgufWriter::set_raw(std::string key, std::uint32_t type, std::vector<std::byte> bytes) {
  keys_.push_back({std::move(key), type, std::move(bytes), {}});
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                               std::vector<std::byte> bytes) {
  tensors_.push_back({std::move(name), type, std::move(dimensions), std::move(bytes)});
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dimensions) {
  const auto [elements, size] = block_of(type);
  const std::uint64_t count =
      std::accumulate(dimensions.begin(), dimensions.end(), std::uint64_t{1}, std::multiplies<>());
  std::vector<std::byte> bytes(count / elements * size);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((name.size() + i * 11) % 127);
  return tensor(std::move(name), type, std::move(dimensions), std::move(bytes));
}

GgufWriter& GgufWriter::align(std::size_t alignment) {
  alignment_ = alignment;
  return *this;
}

GgufImage GgufWriter::image() const {
  GgufImage image;
  std::vector<std::byte>& bytes = image.bytes;
  const auto field = [&](std::string name, auto value) {
    image.fields.push_back({std::move(name), bytes.size(), sizeof(value)});
    append(bytes, value);
  };
  for (const char c : {'G', 'G', 'U', 'F'}) append(bytes, c);
  field("version", version_);
  field("tensors", std::uint64_t{tensors_.size()});
  field("keys", std::uint64_t{keys_.size()});
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    image.fields.push_back({fmt::format("key {} length", i), bytes.size(), 8});
    append_text(bytes, keys_[i].name);
    field(fmt::format("key {} type", i), keys_[i].type);
    for (const GgufField& inner : keys_[i].fields) {
      image.fields.push_back(
          {fmt::format("key {} {}", i, inner.name), bytes.size() + inner.offset, inner.width});
    }
    bytes.insert(bytes.end(), keys_[i].bytes.begin(), keys_[i].bytes.end());
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    image.fields.push_back({fmt::format("tensor {} name length", i), bytes.size(), 8});
    append_text(bytes, tensor.name);
    field(fmt::format("tensor {} dimensions", i), static_cast<std::uint32_t>(tensor.dimensions.size()));
    for (std::size_t d = 0; d < tensor.dimensions.size(); ++d) {
      field(fmt::format("tensor {} dimension {}", i, d), tensor.dimensions[d]);
    }
    field(fmt::format("tensor {} type", i), tensor.type);
    field(fmt::format("tensor {} offset", i), offset);
    offset = (offset + tensor.bytes.size() + alignment_ - 1) / alignment_ * alignment_;
  }
  image.header_bytes = bytes.size();
  for (const Tensor& tensor : tensors_) {
    bytes.resize((bytes.size() + alignment_ - 1) / alignment_ * alignment_);
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return image;
}

void GgufWriter::write(const std::filesystem::path& path) const {
  const std::vector<std::byte> bytes = image().bytes;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

GgufWriter tiny_llama_gguf(std::uint32_t layers, std::uint32_t version) {
  GgufWriter writer(version);
  writer.set("general.architecture", std::string("llama"))
      .set("llama.context_length", std::uint32_t{64})
      .set("llama.embedding_length", std::uint32_t{8})
      .set("llama.block_count", layers)
      .set("llama.feed_forward_length", std::uint32_t{16})
      .set("llama.attention.head_count", std::uint32_t{2})
      .set("llama.attention.head_count_kv", std::uint32_t{1})
      .set("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .set("llama.rope.freq_base", 10000.0f)
      .set("llama.rope.dimension_count", std::uint32_t{4})
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "<s>", "</s>"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 3, 3})
      .set("tokenizer.ggml.eos_token_id", std::uint32_t{3})
      .tensor("token_embd.weight", 0, {8, 4})
      .tensor("output_norm.weight", 0, {8});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}.weight", i, part); };
    writer.tensor(name("attn_norm"), 0, {8})
        .tensor(name("attn_q"), 0, {8, 8})
        .tensor(name("attn_k"), 0, {8, 4})
        .tensor(name("attn_v"), 0, {8, 4})
        .tensor(name("attn_output"), 0, {8, 8})
        .tensor(name("ffn_norm"), 0, {8})
        .tensor(name("ffn_gate"), 0, {8, 16})
        .tensor(name("ffn_up"), 0, {8, 16})
        .tensor(name("ffn_down"), 0, {16, 8});
  }
  return writer;
}

void write_split_gguf(const std::filesystem::path& directory, std::string_view stem,
                      std::vector<GgufWriter> parts, std::size_t tensors_in_all) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i]
        .set("split.no", static_cast<std::uint16_t>(i))
        .set("split.count", static_cast<std::uint16_t>(parts.size()))
        .set("split.tensors.count", static_cast<std::int32_t>(tensors_in_all))
        .write(directory / fmt::format("{}-{:05}-of-{:05}.gguf", stem, i + 1, parts.size()));
  }
}

}  // namespace inferno
