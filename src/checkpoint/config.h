// A model's hyperparameters under Hugging Face names. checkpoint/gguf/config.cpp renames GGUF metadata to
// these, so that an architecture does not depend on the file format.
//
// Nested objects are flattened with dots ("rope_scaling.factor"); null means absent; the newer
// "rope_parameters" object is available under its older names ("rope_theta", "rope_scaling.*").
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace inferno {

class Config {
 public:
  using Value = std::variant<bool, double, std::string, std::vector<std::string>, std::vector<double>>;
  using Values = std::map<std::string, Value, std::less<>>;

  // `origin` is the file name, for messages. `others` are keys whose value has none of these types (a list of
  // objects, a list of mixed types): they cannot be read, but unread() lists them. `nulls` are keys that are
  // present and null.
  explicit Config(Values values, std::string origin = "config.json", std::vector<std::string> others = {},
                  std::vector<std::string> nulls = {});

  const std::string& origin() const { return origin_; }
  const Values& values() const { return values_; }
  bool has(std::string_view key) const;  // with a value of any type
  // For the few keys for which null means "none" and an absent key something else.
  bool is_null(std::string_view key) const { return nulls_.contains(key); }

  // Required: a missing key, a wrong type or a value outside its range is Error{corrupt} naming the key.
  int integer(std::string_view key) const;   // whole, 0 <= value <= 2^31 - 1
  int positive(std::string_view key) const;  // whole, 1 <= value <= 2^31 - 1
  float number(std::string_view key) const;  // finite
  std::vector<float> numbers(std::string_view key) const;

  // Optional: the fallback is the value that Hugging Face documents for an absent key.
  int integer(std::string_view key, int otherwise) const;
  int positive(std::string_view key, int otherwise) const;
  float number(std::string_view key, float otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;  // empty if absent
  std::vector<float> numbers_or_empty(std::string_view key) const;

  // Marks a key as understood without using its value.
  void ignore(std::string_view key) const;

  // Keys that were never read, sorted. The loader refuses a model if one of them changes the mathematics.
  std::vector<std::string> unread() const;

 private:
  const Value* find(std::string_view key) const;
  const Value& require(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const Value& found) const;

  int whole(std::string_view key, const Value& value, int min) const;
  float finite(std::string_view key, const Value& value) const;
  std::vector<float> finite_list(std::string_view key, const Value& value) const;

  Values values_;
  std::string origin_;
  std::set<std::string, std::less<>> others_, nulls_;
  mutable std::set<std::string, std::less<>> read_;  // one thread: describing a model is not concurrent
};

}  // namespace inferno
