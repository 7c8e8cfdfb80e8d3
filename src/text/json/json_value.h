// Reading RapidJSON values with errors that name the field. RapidJSON itself only asserts.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno {

// A value and its location for error messages ("tokenizer.json: model.vocab"). A view into a parsed document.
class JsonValue {
 public:
  JsonValue(const rapidjson::Value& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const rapidjson::Value& raw() const { return *value_; }
  const std::string& where() const { return where_; }

  // Error{corrupt} if the value is missing or of another type.
  std::string_view text() const;
  bool flag() const;
  std::int64_t integer() const;
  double number() const;
  const JsonValue& object() const;  // *this, checked
  const JsonValue& array() const;   // *this, checked

  // Members of an object; null counts as absent.
  JsonValue operator[](const char* name) const;
  std::optional<JsonValue> find(const char* name) const;
  bool flag(const char* name, bool otherwise) const;

  // Elements of an array.
  std::size_t size() const;
  JsonValue operator[](std::size_t index) const;

 private:
  [[noreturn]] void expected(std::string_view kind) const;
  const rapidjson::Value* value_;
  std::string where_;
};

std::string_view text_of(const rapidjson::Value& string);

// A document and the buffer it points into. Error{corrupt} with the offset if `text` is not JSON, or
// nested too deeply or too long.
class JsonDocument {
 public:
  JsonDocument(std::string text, std::string_view name);
  ~JsonDocument() = default;
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;
  JsonValue root() const { return JsonValue(document_, name_); }

 private:
  std::string name_;
  std::string text_;
  rapidjson::Document document_;
};

}  // namespace inferno
