#include "grammar/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/utf8.h"

namespace inferno::grammar {
namespace {

class Reader {
 public:
  Reader(std::string_view text, HalfCharacters half) : text_(text), half_(half) {}

  JsonNode run() {
    JsonNode result = read_value();
    while (depth() > 0) continue_container(result);
    skip_blanks();
    if (at_ < text_.size()) wrong("unexpected text after the value");
    return result;
  }

 private:
  std::size_t depth() const { return containers_.size(); }

  [[noreturn]] void wrong(std::string_view what) const {
    refuse(RefusalKind::invalid, fmt::format("not JSON: {} at byte {}", what, at_));
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char peek() {
    skip_blanks();
    if (at_ >= text_.size()) wrong("unexpected end");
    return text_[at_];
  }
  void expect(char letter) {
    if (peek() != letter) wrong(fmt::format("{} expected", quote({&letter, 1})));
    ++at_;
  }

  // A scalar, or the beginning of a container, which is then on the stack.
  JsonNode read_value() {
    const char letter = peek();
    JsonNode node;
    node.begin = at_;
    if (letter == '{' || letter == '[') {
      ++at_;
      node.kind = letter == '{' ? JsonNode::Kind::object : JsonNode::Kind::array;
      if (containers_.size() >= max_json_depth)
        refuse(RefusalKind::limit, fmt::format("JSON nested deeper than {} (limit {}) at byte {}",
                                               containers_.size(), max_json_depth, at_));
      containers_.push_back(std::move(node));
      is_fresh_ = true;
      return {};
    }
    if (letter == '"') {
      node.kind = JsonNode::Kind::string;
      node.text = read_string();
    } else if (letter == '-' || (letter >= '0' && letter <= '9')) {
      node.kind = JsonNode::Kind::number;
      node.text = read_number();
    } else {
      read_word(node);
    }
    node.end = at_;
    return node;
  }

  // One more member of the innermost container, or its end; `result` is set when the outermost ends.
  void continue_container(JsonNode& result) {
    JsonNode& container = containers_.back();
    const char close = container.kind == JsonNode::Kind::object ? '}' : ']';
    const bool was_fresh = std::exchange(is_fresh_, false);
    if (peek() == close) {
      ++at_;
      return finish(result);
    }
    if (!was_fresh) expect(',');
    if (container.kind == JsonNode::Kind::object) {
      if (peek() != '"') wrong("a key expected");
      container.keys.push_back(read_string());
      expect(':');
    }
    const std::size_t before = depth();
    JsonNode value = read_value();
    if (depth() == before) containers_.back().items.push_back(std::move(value));
  }

  void finish(JsonNode& result) {
    JsonNode node = std::move(containers_.back());
    containers_.pop_back();
    node.end = at_;
    index(node);
    if (containers_.empty())
      result = std::move(node);
    else
      containers_.back().items.push_back(std::move(node));
  }

  void index(JsonNode& node) const {
    node.sorted.resize(node.keys.size());
    std::iota(node.sorted.begin(), node.sorted.end(), 0U);
    std::ranges::sort(node.sorted, {},
                      [&node](std::uint32_t i) -> const std::string& { return node.keys[i]; });
    for (std::size_t i = 1; i < node.sorted.size(); ++i)
      if (node.keys[node.sorted[i]] == node.keys[node.sorted[i - 1]])
        wrong(fmt::format("key {} comes twice in the object that ends", quote(node.keys[node.sorted[i]])));
  }

  void read_word(JsonNode& node) {
    for (const std::string_view word : {"null", "true", "false"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      node.kind = word == "null" ? JsonNode::Kind::null : JsonNode::Kind::boolean;
      node.truth = word == "true";
      return;
    }
    wrong("a value expected");
  }

  std::size_t read_digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }

  std::string read_number() {
    const std::size_t begin = at_;
    const auto skip = [this](std::string_view letters) {
      if (at_ >= text_.size() || letters.find(text_[at_]) == std::string_view::npos) return false;
      ++at_;
      return true;
    };
    skip("-");
    const std::size_t first = at_;
    if (read_digits() == 0 || (text_[first] == '0' && at_ > first + 1)) wrong("a number expected");
    if (skip(".") && read_digits() == 0) wrong("a digit expected");
    if (skip("eE")) {
      skip("+-");
      if (read_digits() == 0) wrong("a digit expected");
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  char32_t read_hex() {
    char32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char digit = at_ < text_.size() ? text_[at_] : ' ';
      const auto place = std::string_view("0123456789abcdef").find(lower_case({&digit, 1}));
      if (place == std::string_view::npos) wrong("a hexadecimal digit expected");
      value = value * 16 + static_cast<char32_t>(place);
    }
    return value;
  }

  void read_unicode(std::string& out) {
    char32_t code = read_hex();
    if (code >= 0xD800 && code <= 0xDBFF && text_.substr(at_).starts_with("\\u")) {
      const std::size_t before = at_;
      at_ += 2;
      const char32_t low = read_hex();
      if (low >= 0xDC00 && low <= 0xDFFF)
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      else
        at_ = before;
    }
    if (code < 0xD800 || code > 0xDFFF) return utf8::append(out, code);
    if (half_ == HalfCharacters::refuse) wrong("half a character");
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }

  std::string read_string() {
    std::string out;
    for (++at_;;) {
      if (at_ >= text_.size()) wrong("string without end");
      const char letter = text_[at_];
      if (static_cast<unsigned char>(letter) < 0x20) wrong("control character in a string");
      ++at_;
      if (letter == '"') return out;
      if (letter != '\\') {
        out += letter;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_] : ' ';
      ++at_;
      const auto place = std::string_view("\"\\/bfnrt").find(escape);
      if (escape == 'u')
        read_unicode(out);
      else if (place != std::string_view::npos)
        out += "\"\\/\b\f\n\r\t"[place];
      else
        wrong("unknown escape");
    }
  }

  std::string_view text_;
  HalfCharacters half_;
  std::size_t at_ = 0;
  std::vector<JsonNode> containers_;
  bool is_fresh_ = false;  // the innermost container has no members yet
};

}  // namespace

const JsonNode* JsonNode::find(std::string_view key) const {
  const auto at = std::ranges::lower_bound(sorted, key, {},
                                           [this](std::uint32_t i) -> std::string_view { return keys[i]; });
  if (at == sorted.end() || keys[*at] != key) return nullptr;
  return &items[*at];
}

JsonNode parse_json_text(std::string_view text, HalfCharacters half) {
  if (const auto at = utf8::first_invalid(text))
    refuse(RefusalKind::invalid, fmt::format("not JSON: not UTF-8 at byte {}", *at));
  return Reader(text, half).run();
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto place = std::string_view("\"\\\b\f\n\r\t").find(letter);
    if (place != std::string_view::npos && letter != '\0')
      (out += '\\') += "\"\\bfnrt"[place];
    else if (static_cast<unsigned char>(letter) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(letter));
    else
      out += letter;
  }
  return out += '"';
}

}  // namespace inferno::grammar
