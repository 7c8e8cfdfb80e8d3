#include "checkpoint/safetensors/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/json_events.h"

namespace inferno {
namespace {

// The limit of the format.
constexpr std::uint64_t max_header = 100'000'000;
constexpr std::uint64_t length_bytes = 8;
// Far above any model; limits the memory for a hostile header to a small multiple of its size.
constexpr std::size_t max_tensors = 1u << 20;
constexpr std::size_t max_dimensions = 8;

constexpr std::array types = {
    SafetensorsType{"F64", 8, WeightFormat::f64},
    SafetensorsType{"F32", 4, WeightFormat::f32},
    SafetensorsType{"F16", 2, WeightFormat::f16},
    SafetensorsType{"BF16", 2, WeightFormat::bf16},
    SafetensorsType{"F8_E4M3", 1, WeightFormat::f8_e4m3},
    SafetensorsType{"F8_E5M2", 1, WeightFormat::f8_e5m2},
    SafetensorsType{"I64", 8, WeightFormat::i64},
    SafetensorsType{"I32", 4, WeightFormat::i32},
    SafetensorsType{"I16", 2, WeightFormat::i16},
    SafetensorsType{"I8", 1, WeightFormat::i8},
    SafetensorsType{"U8", 1, WeightFormat::u8},
    SafetensorsType{"U64", 8, std::nullopt},
    SafetensorsType{"U32", 4, std::nullopt},
    SafetensorsType{"U16", 2, std::nullopt},
    SafetensorsType{"BOOL", 1, std::nullopt},
    SafetensorsType{"F8_E8M0", 1, std::nullopt},
};

// Its offsets are relative to the end of the header.
class HeaderReader final : public JsonEvents {
 public:
  explicit HeaderReader(std::string_view origin) : origin_(origin) {}

  void start_object() override {
    if (++depth_ == 1) return;
    if (depth_ > 2 || in_list_) unexpected("an object");
    if (in_metadata()) return;
    tensors.emplace_back().name = name_;
    fields_.clear();
  }

  void key(std::string name) override {
    if (depth_ == 1) {
      name_ = std::move(name);
      if (name_.find('\0') != std::string::npos) refuse("is not the name of a tensor: it has a zero byte");
      if (!names_.insert(name_).second) refuse("appears twice");
      if (names_.size() > max_tensors) refuse(fmt::format("exceeds the limit of {} tensors", max_tensors));
    } else if (in_metadata()) {
      if (!metadata_keys_.insert(std::move(name)).second) refuse("has a duplicate key");
    } else {
      field_ = std::move(name);
      if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets") {
        refuse(fmt::format("has the field {}, which the format does not define", quote(field_)));
      }
      if (std::find(fields_.begin(), fields_.end(), field_) != fields_.end()) {
        refuse(fmt::format("has {} twice", quote(field_)));
      }
      fields_.push_back(field_);
    }
  }

  void end_object() override {
    if (--depth_ == 1 && !in_metadata() && fields_.size() != 3) {
      refuse("needs dtype, shape and data_offsets");
    }
  }

  void start_array() override {
    if (depth_ != 2 || in_list_ || in_metadata() || field_ == "dtype") unexpected("a list");
    in_list_ = true;
    numbers_.clear();
  }

  void end_array() override {
    in_list_ = false;
    SafetensorsTensor& tensor = tensors.back();
    if (field_ == "shape") {
      for (const std::uint64_t size : numbers_) tensor.shape.push_back(static_cast<std::int64_t>(size));
      return;
    }
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
      refuse("needs two data_offsets, the second not below the first");
    }
    tensor.offset = numbers_[0];
    tensor.bytes = numbers_[1] - numbers_[0];
  }

  void scalar(JsonScalar value) override {
    if (in_list_) return add_number(value);
    if (depth_ != 2) unexpected("a plain value");
    const auto* text = std::get_if<std::string>(&value);
    if (in_metadata()) {
      if (text == nullptr) refuse("may contain only strings");
      return;
    }
    if (text == nullptr || field_ != "dtype") unexpected("a plain value");
    tensors.back().type = safetensors_type(*text);
    if (tensors.back().type == nullptr) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: tensor {} has elements of type {}, which Inferno does not read", origin_,
                       quote(name_), quote(*text)));
    }
  }

  std::vector<SafetensorsTensor> tensors;

 private:
  bool in_metadata() const { return name_ == "__metadata__"; }

  void add_number(const JsonScalar& value) {
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr || *number > std::numeric_limits<std::int64_t>::max()) {
      refuse(fmt::format("needs whole numbers from 0 to 2^63 - 1 in {}", quote(field_)));
    }
    if (numbers_.size() == max_dimensions) {
      refuse(fmt::format("has more than {} numbers in {}", max_dimensions, quote(field_)));
    }
    numbers_.push_back(*number);
  }

  [[noreturn]] void refuse(std::string_view problem) const {
    fail(ErrorKind::corrupt, fmt::format("{}: {} {}", origin_, quote(name_), problem));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    if (depth_ == 0) fail(ErrorKind::corrupt, fmt::format("{}: expected a JSON object as header", origin_));
    refuse(fmt::format("has {} where the format allows none", what));
  }

  std::string_view origin_;
  int depth_ = 0;
  bool in_list_ = false;
  std::string name_, field_;
  std::vector<std::string> fields_;  // fields of the current tensor
  std::vector<std::uint64_t> numbers_;
  std::set<std::string> names_, metadata_keys_;
};

std::string read_header_text(const ByteSource& file, std::string_view origin) {
  if (file.size() < length_bytes) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected a safetensors file, found {} bytes", origin, file.size()));
  }
  std::array<std::byte, length_bytes> raw = {};
  file.read(0, raw);
  std::uint64_t length = 0;
  std::memcpy(&length, raw.data(), raw.size());
  if (length > max_header || length > file.size() - length_bytes) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: the header claims {} bytes; the file has {} and the format allows {}", origin,
                     length, file.size(), max_header),
         {.why = "this is not a safetensors file, or its download stopped early",
          .next = "download it again"});
  }
  std::string text(length, '\0');
  file.read(length_bytes, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected the header to begin with '{{'", origin));
  }
  return text;
}

// Sizes must agree with types and shapes, and the tensors must cover the data without gaps or overlap.
void check_layout(std::vector<SafetensorsTensor>& tensors, std::uint64_t data_bytes,
                  std::string_view origin) {
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::uint64_t covered = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const auto elements = checked::sound_elements(tensor.shape);
    const auto bytes = elements ? checked::mul(*elements, tensor.type->bytes) : std::nullopt;
    if (!bytes || *bytes != tensor.bytes) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: tensor {} of type {} and shape [{}] cannot have {} bytes", origin,
                       quote(tensor.name), tensor.type->name, fmt::join(tensor.shape, ", "), tensor.bytes));
    }
    if (tensor.offset != covered) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected tensor {} at byte {} of the data, found it at {}",
                                           origin, quote(tensor.name), covered, tensor.offset));
    }
    covered += tensor.bytes;  // both are at most 2^63 - 1
  }
  if (covered != data_bytes) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: the tensors need {} bytes of data, the file has {}", origin, covered, data_bytes),
         {.why = covered > data_bytes ? "the download stopped early" : "", .next = "download it again"});
  }
}

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

std::vector<SafetensorsTensor> read_safetensors_header(const ByteSource& file, std::string_view origin) {
  const std::string text = read_header_text(file, origin);
  HeaderReader reader(origin);
  parse_json(text, origin, /*max_depth=*/4, reader);
  const std::uint64_t start = length_bytes + text.size();
  check_layout(reader.tensors, file.size() - start, origin);
  for (SafetensorsTensor& tensor : reader.tensors) tensor.offset += start;
  return std::move(reader.tensors);
}

}  // namespace inferno
