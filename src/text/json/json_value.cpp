#include "text/json/json_value.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

std::string_view kind_of(const rapidjson::Value& value) {
  switch (value.GetType()) {
    case rapidjson::kNullType: return "nothing";
    case rapidjson::kFalseType:
    case rapidjson::kTrueType: return "a boolean";
    case rapidjson::kObjectType: return "an object";
    case rapidjson::kArrayType: return "an array";
    case rapidjson::kStringType: return "a string";
    case rapidjson::kNumberType: return "a number";
  }
  return "something else";
}

// Real files nest a handful of levels and hold about two million values; every value costs memory.
constexpr int max_depth = 64;
constexpr std::size_t max_values = 6'000'000;

// Forwards the parser's events to the document and stops at the limits.
class Limited {
 public:
  explicit Limited(rapidjson::Document& to) : to_(to) {}
  // NOLINTBEGIN(readability-identifier-naming): RapidJSON's names
  bool Null() { return counts() && to_.Null(); }
  bool Bool(bool value) { return counts() && to_.Bool(value); }
  bool Int(int value) { return counts() && to_.Int(value); }
  bool Uint(unsigned value) { return counts() && to_.Uint(value); }
  bool Int64(std::int64_t value) { return counts() && to_.Int64(value); }
  bool Uint64(std::uint64_t value) { return counts() && to_.Uint64(value); }
  bool Double(double value) { return counts() && to_.Double(value); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool copy) {
    return counts() && to_.RawNumber(text, length, copy);
  }
  bool String(const char* text, rapidjson::SizeType length, bool copy) {
    return counts() && to_.String(text, length, copy);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) {
    return counts() && to_.Key(text, length, copy);
  }
  bool StartObject() { return counts() && ++depth_ <= max_depth && to_.StartObject(); }
  bool StartArray() { return counts() && ++depth_ <= max_depth && to_.StartArray(); }
  bool EndObject(rapidjson::SizeType members) {
    --depth_;
    return to_.EndObject(members);
  }
  bool EndArray(rapidjson::SizeType elements) {
    --depth_;
    return to_.EndArray(elements);
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  bool counts() { return ++values_ <= max_values; }
  rapidjson::Document& to_;
  int depth_ = 0;
  std::size_t values_ = 0;
};

struct Build {
  rapidjson::Reader& reader;
  rapidjson::InsituStringStream& stream;
  bool operator()(rapidjson::Document& document) const {
    Limited limited(document);
    return !reader.Parse<rapidjson::kParseInsituFlag>(stream, limited).IsError();
  }
};

}  // namespace

std::string_view text_of(const rapidjson::Value& string) {
  return {string.GetString(), string.GetStringLength()};
}

void JsonValue::expected(std::string_view kind) const {
  fail(ErrorKind::corrupt, fmt::format("{}: expected {}, found {}", where_, kind, kind_of(*value_)));
}

std::string_view JsonValue::text() const {
  if (!value_->IsString()) expected("a string");
  return text_of(*value_);
}

bool JsonValue::flag() const {
  if (!value_->IsBool()) expected("a boolean");
  return value_->GetBool();
}

std::int64_t JsonValue::integer() const {
  if (!value_->IsInt64()) expected("an integer");
  return value_->GetInt64();
}

double JsonValue::number() const {
  if (!value_->IsNumber()) expected("a number");
  return value_->GetDouble();
}

const JsonValue& JsonValue::object() const {
  if (!value_->IsObject()) expected("an object");
  return *this;
}

const JsonValue& JsonValue::array() const {
  if (!value_->IsArray()) expected("an array");
  return *this;
}

std::optional<JsonValue> JsonValue::find(const char* name) const {
  const auto member = object().value_->FindMember(name);
  if (member == value_->MemberEnd() || member->value.IsNull()) return std::nullopt;
  return JsonValue(member->value,
                   fmt::format("{}{}{}", where_, where_.ends_with(".json") ? ": " : ".", name));
}

JsonValue JsonValue::operator[](const char* name) const {
  const auto found = find(name);
  if (!found) fail(ErrorKind::corrupt, fmt::format("{}: {} is missing", where_, quote(name)));
  return *found;
}

bool JsonValue::flag(const char* name, bool otherwise) const {
  const auto found = find(name);
  return found ? found->flag() : otherwise;
}

std::size_t JsonValue::size() const {
  return array().value_->Size();
}

JsonValue JsonValue::operator[](std::size_t index) const {
  if (index >= size()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected more than {} elements, found {}", where_, index, size()));
  }
  return JsonValue((*value_)[static_cast<rapidjson::SizeType>(index)], fmt::format("{}[{}]", where_, index));
}

JsonDocument::JsonDocument(std::string text, std::string_view name) : name_(name), text_(std::move(text)) {
  if (const auto bad = utf8::first_invalid(text_)) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected UTF-8, found byte 0x{:02X} at offset {}", name,
                                         static_cast<unsigned char>(text_[*bad]), *bad));
  }
  if (const std::size_t zero = text_.find('\0'); zero != std::string::npos) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected JSON, found a zero byte at offset {}", name, zero));
  }
  rapidjson::Reader reader;
  rapidjson::InsituStringStream stream(text_.data());
  Build build{reader, stream};
  document_.Populate(build);
  if (reader.HasParseError()) {
    const bool limit = reader.GetParseErrorCode() == rapidjson::kParseErrorTermination;
    const std::string why = limit ? fmt::format("more than {} levels or {} values", max_depth, max_values)
                                  : rapidjson::GetParseError_En(reader.GetParseErrorCode());
    fail(ErrorKind::corrupt,
         fmt::format("{}: invalid JSON at offset {}: {}", name, reader.GetErrorOffset(), why));
  }
}

}  // namespace inferno
