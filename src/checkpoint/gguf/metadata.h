// The key-value part of a GGUF file. It keeps the bytes and decodes values on demand: a vocabulary of 200,000
// strings costs nothing until it is used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

class GgufMetadata {
 public:
  // The location of a value in the bytes. The parser has checked that it is complete.
  struct Entry {
    GgufType type = GgufType::u8;  // element type, for an array
    bool is_array = false;
    std::uint64_t count = 1;
    std::size_t offset = 0;  // of the first element
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  GgufMetadata(std::vector<std::byte> bytes, Entries entries, std::string origin);

  const std::string& origin() const { return origin_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // of the file, up to the end of the last value
  const Entries& entries() const { return entries_; }
  bool has(std::string_view key) const { return entries_.contains(key); }

  // nullopt if the key is absent. Error{corrupt} naming the key if its value has another type; integer() and
  // number() accept integers of any width, number() also floats. Views are valid as long as this object.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;  // booleans as 0 and 1
  std::optional<std::vector<double>> numbers(std::string_view key) const;         // also accepts integers

 private:
  const Entry* find(std::string_view key, bool array, std::string_view expected) const;
  std::int64_t integer_at(std::string_view key, const Entry& entry, std::uint64_t index) const;
  double number_at(std::string_view key, const Entry& entry, std::uint64_t index) const;
  std::string_view string_at(std::size_t& offset) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

  std::vector<std::byte> bytes_;
  Entries entries_;
  std::string origin_;
};

// Bytes of one element; 0 for strings and arrays, whose size varies.
std::size_t size_of(GgufType type);

}  // namespace inferno
