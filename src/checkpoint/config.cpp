#include "checkpoint/config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::size_t max_shown_elements = 4;

std::string shown(bool value) {
  return value ? "true" : "false";
}
std::string shown(double value) {
  return fmt::format("{}", value);
}
std::string shown(const std::string& value) {
  return quote(value);
}

template <class T>
std::string shown(const std::vector<T>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < max_shown_elements; ++i) {
    text += (i == 0 ? "" : ", ") + shown(values[i]);
  }
  return fmt::format("[{}{}]", text, values.size() > max_shown_elements ? ", ..." : "");
}

}  // namespace

Config::Config(Values values, std::string origin, std::vector<std::string> others,
               std::vector<std::string> nulls)
    : values_(std::move(values)), origin_(std::move(origin)) {
  for (std::string& key : others) others_.insert(std::move(key));
  for (std::string& key : nulls) nulls_.insert(std::move(key));
}

bool Config::has(std::string_view key) const {
  return values_.contains(key) || others_.contains(key);
}

const Config::Value* Config::find(std::string_view key) const {
  if (others_.contains(key)) {
    fail(ErrorKind::corrupt, fmt::format("{}: {} is a list of an unsupported type", origin_, quote(key)));
  }
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  read_.emplace(key);
  return &found->second;
}

const Config::Value& Config::require(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected {}, which is missing", origin_, quote(key)));
  }
  return *value;
}

void Config::refuse(std::string_view key, std::string_view expected, const Value& found) const {
  const std::string text = std::visit([](const auto& value) { return shown(value); }, found);
  fail(ErrorKind::corrupt,
       fmt::format("{}: expected {} for {}, found {}", origin_, expected, quote(key), text));
}

int Config::whole(std::string_view key, const Value& value, int min) const {
  const auto* number = std::get_if<double>(&value);
  constexpr int max = std::numeric_limits<int>::max();
  if (number == nullptr || !(*number >= min && *number <= max) || std::trunc(*number) != *number) {
    refuse(key, fmt::format("a whole number from {} to {}", min, max), value);
  }
  return static_cast<int>(*number);
}

float Config::finite(std::string_view key, const Value& value) const {
  const auto* number = std::get_if<double>(&value);
  constexpr double max = std::numeric_limits<float>::max();
  if (number == nullptr || !(std::abs(*number) <= max)) refuse(key, "a finite number", value);
  return static_cast<float>(*number);
}

std::vector<float> Config::finite_list(std::string_view key, const Value& value) const {
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (numbers == nullptr) refuse(key, "a list of numbers", value);
  std::vector<float> result;
  result.reserve(numbers->size());
  for (const double number : *numbers) result.push_back(finite(key, number));
  return result;
}

int Config::integer(std::string_view key) const {
  return whole(key, require(key), 0);
}
int Config::positive(std::string_view key) const {
  return whole(key, require(key), 1);
}
float Config::number(std::string_view key) const {
  return finite(key, require(key));
}
std::vector<float> Config::numbers(std::string_view key) const {
  return finite_list(key, require(key));
}

int Config::integer(std::string_view key, int otherwise) const {
  const Value* value = find(key);
  return value == nullptr ? otherwise : whole(key, *value, 0);
}

int Config::positive(std::string_view key, int otherwise) const {
  const Value* value = find(key);
  return value == nullptr ? otherwise : whole(key, *value, 1);
}

float Config::number(std::string_view key, float otherwise) const {
  const Value* value = find(key);
  return value == nullptr ? otherwise : finite(key, *value);
}

bool Config::flag(std::string_view key, bool otherwise) const {
  const Value* value = find(key);
  if (value == nullptr) return otherwise;
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) refuse(key, "true or false", *value);
  return *flag;
}

std::string Config::text(std::string_view key, std::string otherwise) const {
  const Value* value = find(key);
  if (value == nullptr) return otherwise;
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) refuse(key, "a string", *value);
  return *text;
}

std::vector<std::string> Config::texts(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return {};
  // An empty list has no element type and is stored as a list of numbers.
  if (const auto* none = std::get_if<std::vector<double>>(value); none != nullptr && none->empty()) return {};
  const auto* texts = std::get_if<std::vector<std::string>>(value);
  if (texts == nullptr) refuse(key, "a list of strings", *value);
  return *texts;
}

std::vector<float> Config::numbers_or_empty(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::vector<float>{} : finite_list(key, *value);
}

void Config::ignore(std::string_view key) const {
  read_.emplace(key);
}

std::vector<std::string> Config::unread() const {
  std::set<std::string, std::less<>> keys = others_;
  for (const auto& [key, value] : values_) keys.insert(key);
  std::vector<std::string> result;
  for (const std::string& key : keys) {
    if (!read_.contains(key)) result.push_back(key);
  }
  return result;
}

}  // namespace inferno
