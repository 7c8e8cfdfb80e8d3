#include "checkpoint/gguf/metadata.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::u16:
    case GgufType::i16:
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::u64:
    case GgufType::i64: return true;
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array: break;
  }
  return false;
}

bool is_number(GgufType type) {
  return is_integer(type) || type == GgufType::f32 || type == GgufType::f64;
}

}  // namespace

std::size_t size_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: break;
  }
  return 0;
}

GgufMetadata::GgufMetadata(std::vector<std::byte> bytes, Entries entries, std::string origin)
    : bytes_(std::move(bytes)), entries_(std::move(entries)), origin_(std::move(origin)) {}

void GgufMetadata::refuse(std::string_view key, std::string_view expected) const {
  fail(ErrorKind::corrupt, fmt::format("{}: expected {} for {}", origin_, expected, quote(key)));
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key, bool array,
                                              std::string_view expected) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (found->second.is_array != array) refuse(key, expected);
  return &found->second;
}

std::int64_t GgufMetadata::integer_at(std::string_view key, const Entry& entry, std::uint64_t index) const {
  const std::byte* from = bytes_.data() + entry.offset + index * size_of(entry.type);
  switch (entry.type) {
    case GgufType::u8: return load<std::uint8_t>(from);
    case GgufType::i8: return load<std::int8_t>(from);
    case GgufType::u16: return load<std::uint16_t>(from);
    case GgufType::i16: return load<std::int16_t>(from);
    case GgufType::u32: return load<std::uint32_t>(from);
    case GgufType::i32: return load<std::int32_t>(from);
    case GgufType::i64: return load<std::int64_t>(from);
    case GgufType::boolean: return load<std::uint8_t>(from);
    case GgufType::u64: break;
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::string:
    case GgufType::array: refuse(key, "a whole number");
  }
  const auto value = load<std::uint64_t>(from);
  if (value > std::numeric_limits<std::int64_t>::max()) refuse(key, "a whole number below 2^63");
  return static_cast<std::int64_t>(value);
}

double GgufMetadata::number_at(std::string_view key, const Entry& entry, std::uint64_t index) const {
  const std::byte* from = bytes_.data() + entry.offset + index * size_of(entry.type);
  if (entry.type == GgufType::f32) return static_cast<double>(load<float>(from));
  if (entry.type == GgufType::f64) return load<double>(from);
  if (entry.type == GgufType::u64) return static_cast<double>(load<std::uint64_t>(from));
  return static_cast<double>(integer_at(key, entry, index));
}

std::string_view GgufMetadata::string_at(std::size_t& offset) const {
  const auto length = static_cast<std::size_t>(load<std::uint64_t>(bytes_.data() + offset));
  const auto* start = reinterpret_cast<const char*>(bytes_.data() + offset + sizeof(std::uint64_t));
  offset += sizeof(std::uint64_t) + length;
  return {start, length};
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) const {
  const Entry* entry = find(key, false, "a whole number");
  if (entry == nullptr) return std::nullopt;
  if (!is_integer(entry->type)) refuse(key, "a whole number");
  return integer_at(key, *entry, 0);
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const Entry* entry = find(key, false, "a number");
  if (entry == nullptr) return std::nullopt;
  if (!is_number(entry->type)) refuse(key, "a number");
  return number_at(key, *entry, 0);
}

std::optional<bool> GgufMetadata::flag(std::string_view key) const {
  const Entry* entry = find(key, false, "true or false");
  if (entry == nullptr) return std::nullopt;
  if (entry->type != GgufType::boolean) refuse(key, "true or false");
  return integer_at(key, *entry, 0) != 0;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  const Entry* entry = find(key, false, "a string");
  if (entry == nullptr) return std::nullopt;
  if (entry->type != GgufType::string) refuse(key, "a string");
  std::size_t offset = entry->offset;
  return string_at(offset);
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  const Entry* entry = find(key, true, "a list of strings");
  if (entry == nullptr) return std::nullopt;
  if (entry->type != GgufType::string) refuse(key, "a list of strings");
  std::vector<std::string_view> result;
  result.reserve(entry->count);
  std::size_t offset = entry->offset;
  for (std::uint64_t i = 0; i < entry->count; ++i) result.push_back(string_at(offset));
  return result;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  const Entry* entry = find(key, true, "a list of whole numbers");
  if (entry == nullptr) return std::nullopt;
  if (!is_integer(entry->type) && entry->type != GgufType::boolean) refuse(key, "a list of whole numbers");
  std::vector<std::int64_t> result(entry->count);
  for (std::uint64_t i = 0; i < entry->count; ++i) result[i] = integer_at(key, *entry, i);
  return result;
}

std::optional<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  const Entry* entry = find(key, true, "a list of numbers");
  if (entry == nullptr) return std::nullopt;
  if (!is_number(entry->type)) refuse(key, "a list of numbers");
  std::vector<double> result(entry->count);
  for (std::uint64_t i = 0; i < entry->count; ++i) result[i] = number_at(key, *entry, i);
  return result;
}

}  // namespace inferno
