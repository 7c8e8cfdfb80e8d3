#include "checkpoint/gguf/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf/types.h"

namespace inferno {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are copied without byte swapping");

constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t max_alignment = 1u << 20;
constexpr std::uint64_t max_header = 128u << 20;
constexpr std::uint64_t first_read = 1u << 20;
constexpr std::uint64_t max_keys = 1u << 16;
constexpr std::uint64_t max_tensors = 1u << 16;
constexpr std::uint64_t max_key_bytes = 65535;  // the limit of the format
constexpr std::uint64_t max_tensor_name_bytes = 255;
constexpr std::uint32_t max_dimensions = 4;
// The smallest encoding of each, to refuse a count before allocating memory for it.
constexpr std::uint64_t min_key_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t min_tensor_bytes = 8 + 1 + 4 + 4 + 8;

// Reads the header front to back, in growing pieces, because its length is unknown until its end.
class HeaderReader {
 public:
  HeaderReader(const ByteSource& file, std::string origin, std::size_t start = 0)
      : file_(file), origin_(std::move(origin)), start_(start), position_(start) {}

  std::size_t position() const { return position_; }
  std::uint64_t remaining() const { return file_.size() - std::min<std::uint64_t>(position_, file_.size()); }

  // The bytes read so far. Ends reading.
  std::vector<std::byte> take_bytes() {
    bytes_.resize(position_ - start_);
    return std::move(bytes_);
  }

  template <class T>
  T value(std::string_view what) {
    need(sizeof(T), what);
    T result;
    std::memcpy(&result, bytes_.data() + position_ - start_, sizeof(T));
    position_ += sizeof(T);
    return result;
  }

  // The view is valid until the next read.
  std::string_view string(std::uint64_t max_bytes, std::string_view what) {
    const auto length = value<std::uint64_t>(what);
    if (length > max_bytes) {
      refuse(fmt::format("expected {} of at most {} bytes, found {}", what, max_bytes, length));
    }
    need(length, what);
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + position_ - start_);
    position_ += static_cast<std::size_t>(length);
    return {start, static_cast<std::size_t>(length)};
  }

  void skip(std::uint64_t count, std::string_view what) {
    need(count, what);
    position_ += static_cast<std::size_t>(count);
  }

  [[noreturn]] void refuse(std::string_view problem, ErrorKind kind = ErrorKind::corrupt,
                           Advice advice = {}) const {
    fail(kind, fmt::format("{}: {}", origin_, problem), std::move(advice));
  }

 private:
  void need(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      refuse(fmt::format("expected {} of {} bytes at {}, but the file has only {} bytes", what, count,
                         position_, file_.size()),
             ErrorKind::corrupt,
             {.why = "the download stopped early, or a length is wrong", .next = "download it again"});
    }
    const std::uint64_t end = position_ + count;  // at most the size of the file
    const std::size_t had = bytes_.size();
    if (end - start_ <= had) return;
    if (end > max_header) {
      refuse(fmt::format("expected a header of at most {} bytes, found more", max_header));
    }
    const std::uint64_t wanted = std::max({end - start_, std::uint64_t{2} * had, first_read});
    bytes_.resize(static_cast<std::size_t>(std::min({wanted, file_.size() - start_, max_header - start_})));
    file_.read(start_ + had, std::span(bytes_).subspan(had));
  }

  const ByteSource& file_;
  std::string origin_;
  std::vector<std::byte> bytes_;  // from start_ on
  std::size_t start_, position_;  // in the file
};

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t keys = 0;
};

void check_magic(const HeaderReader& reader, std::string_view magic) {
  if (magic == "GGUF") return;
  if (magic == "FUGG")
    reader.refuse("this GGUF file is big-endian, which Inferno does not read", ErrorKind::unsupported);
  for (const std::string_view old : {"lmgg", "tjgg", "algg", "fmgg"}) {
    if (magic == old) {
      reader.refuse("this is a file in an old format (GGML, GGJT), which Inferno does not read",
                    ErrorKind::unsupported, {.why = {}, .next = "use a GGUF file of this model"});
    }
  }
  reader.refuse(fmt::format("expected a GGUF file, found {} at its start", quote(magic)));
}

Counts read_preamble(HeaderReader& reader) {
  const auto magic = reader.value<std::array<char, 4>>("the magic number");
  check_magic(reader, {magic.data(), magic.size()});
  const auto version = reader.value<std::uint32_t>("the version");
  if (version != 0 && (version & 0xFFFFu) == 0) {
    reader.refuse("this GGUF file is big-endian, which Inferno does not read", ErrorKind::unsupported);
  }
  if (version != 2 && version != 3) {
    reader.refuse(fmt::format("expected GGUF version 2 or 3, found version {}", version),
                  ErrorKind::unsupported, {.why = {}, .next = "use a file written by a current converter"});
  }
  Counts counts;
  counts.tensors = reader.value<std::uint64_t>("the number of tensors");
  counts.keys = reader.value<std::uint64_t>("the number of keys");
  if (counts.keys > std::min(max_keys, reader.remaining() / min_key_bytes)) {
    reader.refuse(fmt::format("expected fewer keys in a file of this size, found {}", counts.keys));
  }
  if (counts.tensors > std::min(max_tensors, reader.remaining() / min_tensor_bytes)) {
    reader.refuse(fmt::format("expected fewer tensors in a file of this size, found {}", counts.tensors));
  }
  return counts;
}

GgufType read_type(HeaderReader& reader, const std::string& key) {
  const auto number = reader.value<std::uint32_t>("a type");
  if (number > static_cast<std::uint32_t>(GgufType::f64)) {
    reader.refuse(fmt::format("{} has a value of unknown type {}", quote(key), number));
  }
  return static_cast<GgufType>(number);
}

void skip_element(HeaderReader& reader, GgufType type, const std::string& key) {
  if (type == GgufType::string) {
    reader.string(std::numeric_limits<std::uint64_t>::max(), "a string");
  } else if (type == GgufType::boolean) {
    const auto value = reader.value<std::uint8_t>("a boolean");
    if (value > 1) reader.refuse(fmt::format("{} should be 0 or 1, found {}", quote(key), value));
  } else {
    reader.skip(size_of(type), "a value");
  }
}

GgufMetadata::Entry read_value(HeaderReader& reader, const std::string& key) {
  GgufMetadata::Entry entry;
  entry.type = read_type(reader, key);
  if (entry.type == GgufType::array) {
    entry.is_array = true;
    entry.type = read_type(reader, key);
    if (entry.type == GgufType::array) {
      reader.refuse(fmt::format("{} is a nested array, which Inferno does not read", quote(key)));
    }
    entry.count = reader.value<std::uint64_t>("a number of elements");
    const std::uint64_t min_bytes =
        entry.type == GgufType::string ? sizeof(std::uint64_t) : size_of(entry.type);
    if (entry.count > reader.remaining() / min_bytes) {
      reader.refuse(fmt::format("{} has {} elements, but the file is too short", quote(key), entry.count));
    }
  }
  entry.offset = reader.position();
  const bool fixed = entry.type != GgufType::string && entry.type != GgufType::boolean;
  if (entry.is_array && fixed) {
    reader.skip(entry.count * size_of(entry.type), "a list");  // at most remaining(), as checked above
  } else {
    for (std::uint64_t i = 0; i < entry.count; ++i) skip_element(reader, entry.type, key);
  }
  return entry;
}

GgufMetadata::Entries read_entries(HeaderReader& reader, std::uint64_t count) {
  GgufMetadata::Entries entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key(reader.string(max_key_bytes, "a key"));
    if (key.empty() || !utf8::is_valid(key)) reader.refuse(fmt::format("invalid key {}", quote(key)));
    const GgufMetadata::Entry entry = read_value(reader, key);
    const auto [place, fresh] = entries.emplace(std::move(key), entry);
    if (!fresh) reader.refuse(fmt::format("duplicate key {}", quote(place->first)));
  }
  return entries;
}

// Unsupported tensor types, collected so that one message lists all of them.
using Unreadable = std::set<std::string>;

void read_shape(HeaderReader& reader, GgufTensor& tensor) {
  const auto dimensions = reader.value<std::uint32_t>("a number of dimensions");
  if (dimensions > max_dimensions) {
    reader.refuse(fmt::format("tensor {} has {} dimensions, the maximum is {}", quote(tensor.name),
                              dimensions, max_dimensions));
  }
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = reader.value<std::uint64_t>("a dimension");
    if (size > std::numeric_limits<std::int64_t>::max()) {
      reader.refuse(fmt::format("tensor {} has a dimension of {}", quote(tensor.name), size));
    }
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
}

void measure(const HeaderReader& reader, GgufTensor& tensor) {
  const auto block = static_cast<std::uint64_t>(block_elements(tensor.format));
  const std::uint64_t row = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape.back());
  const auto elements = checked::sound_elements(tensor.shape);
  if (row % block != 0) {
    reader.refuse(fmt::format("tensor {} has rows of {} elements, but {} comes in blocks of {}",
                              quote(tensor.name), row, name_of(tensor.format), block));
  }
  const auto bytes = elements ? checked::mul(*elements / block, block_bytes(tensor.format)) : std::nullopt;
  if (!bytes) {
    reader.refuse(fmt::format("tensor {} has the invalid shape [{}]", quote(tensor.name),
                              fmt::join(tensor.shape, ", ")));
  }
  tensor.bytes = *bytes;
}

GgufTensor read_tensor(HeaderReader& reader, Unreadable& unreadable) {
  GgufTensor tensor;
  tensor.name = reader.string(max_tensor_name_bytes, "a tensor's name");
  const bool has_zero = tensor.name.find('\0') != std::string::npos;  // a message would end there
  if (tensor.name.empty() || has_zero || !utf8::is_valid(tensor.name)) {
    reader.refuse(fmt::format("invalid tensor name {}", quote(tensor.name)));
  }
  read_shape(reader, tensor);
  const auto type = reader.value<std::uint32_t>("a tensor's type");
  tensor.offset = reader.value<std::uint64_t>("a tensor's offset");
  if (const auto format = ggml_format(type)) {
    tensor.format = *format;
    measure(reader, tensor);
  } else {
    unreadable.insert(ggml_type_name(type));
  }
  return tensor;
}

std::uint64_t alignment_of(const HeaderReader& reader, const GgufMetadata& metadata) {
  const auto entry = metadata.entries().find("general.alignment");
  if (entry == metadata.entries().end()) return default_alignment;
  const std::int64_t value =
      entry->second.type == GgufType::u32 ? metadata.integer("general.alignment").value_or(0) : 0;
  const auto alignment = static_cast<std::uint64_t>(value);
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > max_alignment) {
    reader.refuse(fmt::format("expected \"general.alignment\" to be a power of two from 8 to {}, found {}",
                              max_alignment, alignment));
  }
  return alignment;
}

// Makes offsets relative to the start of the file; refuses tensors that exceed the file or overlap.
void place_tensors(const HeaderReader& reader, std::vector<GgufTensor>& tensors, std::uint64_t alignment,
                   std::uint64_t file_bytes) {
  const auto start = checked::align_up(reader.position(), alignment);
  std::vector<const GgufTensor*> order;
  for (GgufTensor& tensor : tensors) {
    if (tensor.offset % alignment != 0) {
      reader.refuse(fmt::format("tensor {} is at offset {}, which is not a multiple of {}",
                                quote(tensor.name), tensor.offset, alignment));
    }
    const auto place = start ? checked::add(*start, tensor.offset) : std::nullopt;
    const auto end = place ? checked::add(*place, tensor.bytes) : std::nullopt;
    if (!end || *end > file_bytes) {
      reader.refuse(
          fmt::format("tensor {} needs {} bytes at offset {} of the data, but the file is too short",
                      quote(tensor.name), tensor.bytes, tensor.offset),
          ErrorKind::corrupt, {.why = "the download stopped early", .next = "download it again"});
    }
    tensor.offset = *place;
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes) {
      reader.refuse(
          fmt::format("tensors {} and {} overlap", quote(order[i - 1]->name), quote(order[i]->name)));
    }
  }
}

std::vector<GgufTensor> read_tensors(HeaderReader& reader, std::uint64_t count) {
  std::vector<GgufTensor> tensors;
  Unreadable unreadable;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors.push_back(read_tensor(reader, unreadable));
    if (!names.insert(tensors.back().name).second) {
      reader.refuse(fmt::format("duplicate tensor {}", quote(tensors.back().name)));
    }
  }
  if (!unreadable.empty()) {
    reader.refuse(fmt::format("has tensors of unsupported types: {}", fmt::join(unreadable, ", ")),
                  ErrorKind::unsupported,
                  {.why = {}, .next = "use another quantization of this model, for example Q4_K_M or Q8_0"});
  }
  return tensors;
}

}  // namespace

GgufMetadata read_gguf_metadata(const ByteSource& file, const std::string& origin) {
  HeaderReader reader(file, origin);
  const Counts counts = read_preamble(reader);
  GgufMetadata::Entries entries = read_entries(reader, counts.keys);
  return GgufMetadata(reader.take_bytes(), std::move(entries), origin);
}

GgufMetadata read_gguf_metadata(const std::filesystem::path& path) {
  return read_gguf_metadata(*open_file(path), path.string());
}

std::vector<GgufTensor> read_gguf_tensors(const ByteSource& file, const GgufMetadata& metadata) {
  constexpr std::size_t count_offset = 8;  // after the magic number and the version
  std::uint64_t count = 0;
  std::memcpy(&count, metadata.bytes().data() + count_offset, sizeof(count));
  HeaderReader reader(file, metadata.origin(), metadata.bytes().size());
  std::vector<GgufTensor> tensors = read_tensors(reader, count);
  place_tensors(reader, tensors, alignment_of(reader, metadata), file.size());
  return tensors;
}

GgufHeader read_gguf_header(const ByteSource& file, const std::string& origin) {
  GgufMetadata metadata = read_gguf_metadata(file, origin);
  std::vector<GgufTensor> tensors = read_gguf_tensors(file, metadata);
  return {std::move(metadata), std::move(tensors)};
}

}  // namespace inferno
