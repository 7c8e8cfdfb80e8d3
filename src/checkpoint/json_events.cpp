#include "checkpoint/json_events.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

class Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Adapter(std::string_view origin, int max_depth, JsonEvents& events)
      : origin_(origin), max_depth_(max_depth), events_(events) {}

  bool null() override { return give(nullptr); }
  bool boolean(bool value) override { return give(value); }
  bool number_integer(number_integer_t value) override { return give(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return give(value); }
  bool number_float(number_float_t value, const string_t&) override { return give(value); }
  bool string(string_t& value) override { return give(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    descend();
    events_.start_object();
    return true;
  }
  bool key(string_t& name) override {
    events_.key(std::move(name));
    return true;
  }
  bool end_object() override {
    --depth_;
    events_.end_object();
    return true;
  }
  bool start_array(std::size_t) override {
    descend();
    events_.start_array();
    return true;
  }
  bool end_array() override {
    --depth_;
    events_.end_array();
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception&) override {
    fail(ErrorKind::corrupt,
         fmt::format("{}: not valid JSON at byte {}, after {}", origin_, position, quote(last_token)));
  }

 private:
  bool give(JsonScalar value) {
    events_.scalar(std::move(value));
    return true;
  }

  void descend() {
    if (++depth_ > max_depth_) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: expected at most {} levels of nesting, found more", origin_, max_depth_));
    }
  }

  std::string_view origin_;
  int max_depth_;
  int depth_ = 0;
  JsonEvents& events_;
};

}  // namespace

void parse_json(std::string_view text, std::string_view origin, int max_depth, JsonEvents& events) {
  // The parser treats a zero byte as the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    fail(ErrorKind::corrupt, fmt::format("{}: not valid JSON at byte {}, which is zero", origin, zero));
  }
  Adapter adapter(origin, max_depth, events);
  nlohmann::json::sax_parse(text.begin(), text.end(), &adapter);
}

}  // namespace inferno
