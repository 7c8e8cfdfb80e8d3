#include "chat/json.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::size_t max_nesting = 256, max_request_nesting = 64;
// For fewer keys a linear search is faster than hashing.
constexpr std::size_t min_hashed_keys = 16;
constexpr std::size_t max_shown = 64;  // bytes of a key in a message

// Builds the document instead of the library: the library's insertion into an ordered object searches all
// earlier keys, which is quadratic in the size of a hostile request.
class Builder {
 public:
  enum class Refusal { error, silence };
  Builder(std::string_view name, LargeIntegers large, Refusal refusal = Refusal::error)
      : name_(name), large_(large), refusal_(refusal) {}

  void apply_rules_of_requests() {
    max_nesting_ = max_request_nesting;
    is_request_ = true;
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return too_large(static_cast<double>(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& spelling) {
    if (spelling.find_first_of(".eE") == std::string::npos) return too_large(value);
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return refuse("binary data"); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    Entries& entries = entries_of(level.value);
    level.slot = entries.size();
    if (entries.size() < min_hashed_keys) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].first == name) level.slot = i;
      }
    } else {
      for (std::size_t i = level.places.size(); i < entries.size(); ++i)
        level.places.emplace(entries[i].first, i);
      level.slot = level.places.try_emplace(name, entries.size()).first->second;
    }
    if (level.slot < entries.size()) {
      return !is_request_ || refuse(fmt::format("the key {} twice", quote(name, max_shown)));
    }
    entries.emplace_back(std::move(name), nullptr);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    if (refusal_ == Refusal::silence) return false;
    fail(ErrorKind::corrupt, fmt::format("{}: not valid JSON at byte {}", name_, position));
  }

  // False only if it is silent. The library takes a NUL byte for the end of the text.
  bool read(std::string_view text) {
    const std::size_t zero = text.find('\0');
    if (!Json::sax_parse(text.begin(), text.end(), this)) return false;
    return zero == std::string_view::npos || refuse("a NUL byte");
  }

  Json take() { return std::move(root_); }

 private:
  using Entries = std::vector<std::pair<const std::string, Json>>;
  // The library's ordered object is a vector that does not offer access by position.
  static Entries& entries_of(Json& object) { return object.get_ref<Json::object_t&>(); }
  struct Level {
    Json value;
    std::size_t slot = 0;                                 // index of the next value of an object
    std::unordered_map<std::string, std::size_t> places;  // of its keys, from min_hashed_keys on
  };

  bool refuse(std::string_view what) {
    if (refusal_ == Refusal::silence) return false;
    fail(ErrorKind::corrupt, fmt::format("{}: contains {}", name_, what));
  }

  bool too_large(double value) {
    // A field of a request has a range of its own, and its reader can name the field.
    const bool is_field = is_request_ && levels_.size() == 1;
    return large_ == LargeIntegers::round || is_field ? add(value) : refuse("an integer beyond 64 bits");
  }

  bool open(Json container) {
    if (levels_.size() >= max_nesting_) {
      if (refusal_ == Refusal::silence) return false;
      fail(ErrorKind::corrupt, fmt::format("{}: nested deeper than {} levels", name_, max_nesting_));
    }
    levels_.emplace_back().value = std::move(container);
    return true;
  }

  bool close() {
    Json finished = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(finished));
  }

  bool add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.get_ref<Json::array_t&>().push_back(std::move(value));
    } else {
      entries_of(level.value)[level.slot].second = std::move(value);
    }
    return true;
  }

  std::string_view name_;
  LargeIntegers large_;
  Refusal refusal_;
  std::size_t max_nesting_ = max_nesting;
  bool is_request_ = false;
  Json root_;
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view name, LargeIntegers large) {
  Builder builder(name, large);
  builder.read(text);
  return builder.take();
}

Json parse_request_json(std::string_view text, std::string_view name) {
  Builder builder(name, LargeIntegers::refuse);
  builder.apply_rules_of_requests();
  builder.read(text);
  return builder.take();
}

std::optional<Json> parse_json_if_valid(std::string_view text, LargeIntegers large) {
  Builder builder("", large, Builder::Refusal::silence);
  if (!builder.read(text)) return std::nullopt;
  return builder.take();
}

}  // namespace inferno
