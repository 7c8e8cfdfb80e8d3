// A model's hyperparameters under Hugging Face names. GGUF metadata is renamed into these once, in
// checkpoint/gguf/config.cpp, so an architecture never asks which file format it came from.
//
// Nested objects are flattened with dots ("rope_scaling.factor"); null means absent; the newer
// "rope_parameters" object is read under its older names ("rope_theta", "rope_scaling.*").
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

  // `origin` is the file's name, for messages. `others` are keys whose value is of no kind above (a list of
  // objects, a list of mixed kinds): nobody can read them, but unread() names them. `nulls` are keys that are
  // there and null.
  explicit Config(Values values, std::string origin = "config.json", std::vector<std::string> others = {},
                  std::vector<std::string> nulls = {});

  const std::string& origin() const { return origin_; }
  const Values& values() const { return values_; }
  bool has(std::string_view key) const;  // whatever kind its value is
  // For the few keys where null says "none" and a missing key something else.
  bool is_null(std::string_view key) const { return nulls_.contains(key); }

  // Required: a missing key, a wrong type or a value outside its range is Error{corrupt} naming it.
  int integer(std::string_view key) const;   // whole, 0 <= value <= 2^31 - 1
  int positive(std::string_view key) const;  // whole, 1 <= value <= 2^31 - 1
  float number(std::string_view key) const;  // finite
  std::vector<float> numbers(std::string_view key) const;

  // Optional: the fallback is the value Hugging Face documents for an absent key.
  int integer(std::string_view key, int otherwise) const;
  int positive(std::string_view key, int otherwise) const;
  float number(std::string_view key, float otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;  // empty when absent
  std::vector<float> numbers_or_empty(std::string_view key) const;

  // Marks a key as understood without using its value.
  void ignore(std::string_view key) const;

  // Keys nobody read, sorted. The loader refuses a model when one of them changes the mathematics.
  std::vector<std::string> unread() const;

 private:
  const Value* find(std::string_view key) const;
  const Value& require(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const Value& found) const;

  int whole(std::string_view key, const Value& value, int least) const;
  float finite(std::string_view key, const Value& value) const;
  std::vector<float> finite_list(std::string_view key, const Value& value) const;

  Values values_;
  std::string origin_;
  std::set<std::string, std::less<>> others_, nulls_;
  mutable std::set<std::string, std::less<>> read_;  // one thread: describing a model is not concurrent
};

}  // namespace inferno
