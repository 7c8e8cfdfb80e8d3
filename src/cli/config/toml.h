// A strict reader for the part of TOML that a configuration needs: tables, bare, quoted and dotted keys,
// strings on one line, integers, floats, booleans, arrays of these, comments. Everything else is refused at
// its line and column, so that no file means something else here than to another TOML reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferno::toml {

// Of a character, counted from 1.
struct Position {
  int line = 1, column = 1;
  friend bool operator==(const Position&, const Position&) = default;
};

enum class Kind { boolean, integer, floating, string };

struct Scalar {
  Kind kind = Kind::string;
  // A string without quotes and escapes; true or false; an integer in decimal digits, a float as it is
  // written, both without underscores.
  std::string text;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

struct Entry {
  std::vector<std::string> path;  // with the table's: {"model", "qwen3", "temperature"}
  Position key_at, value_at;
  std::vector<Scalar> values;  // one, unless it is an array
  bool is_array = false;
};

// A header: [model."qwen3"]
struct Table {
  std::vector<std::string> path;
  Position at;
};

// In the order of the file. No path occurs twice.
struct Document {
  std::vector<Table> tables;
  std::vector<Entry> entries;
};

inline constexpr std::size_t max_bytes = std::size_t{1} << 20;

// Error{invalid_request} with "ORIGIN:LINE:COLUMN: what". Takes time in proportion to the text, which may
// have max_bytes.
Document parse(std::string_view text, const std::string& origin);

// The key as it is written in a file: in quotes if it needs them.
std::string written_key(std::string_view key);

}  // namespace inferno::toml
