#include "text/decoder.h"

#include "text/byte_alphabet.h"

namespace inferno {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Apply {
  std::string text;

  void operator()(const decode::ReadBytes&) {
    if (auto bytes = byte_alphabet::read(text)) text = std::move(*bytes);
  }
  void operator()(const decode::ByteFallback&) {
    if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return;
    const int high = hex_digit(text[3]);
    const int low = hex_digit(text[4]);
    if (high >= 0 && low >= 0) text = std::string(1, static_cast<char>(high * 16 + low));
  }
  void operator()(const decode::Replace& step) {
    for (std::size_t at = text.find(step.pattern); at != std::string::npos;
         at = text.find(step.pattern, at + step.content.size())) {
      text.replace(at, step.pattern.size(), step.content);
    }
  }
  void operator()(const decode::Strip& step) {
    for (int i = 0; i < step.start && text.starts_with(step.content); ++i) text.erase(0, step.content.size());
    for (int i = 0; i < step.stop && text.ends_with(step.content); ++i)
      text.resize(text.size() - step.content.size());
  }
  void operator()(const decode::Prepend& step) { text.insert(0, step.text); }
};

}  // namespace

std::string Decoder::bytes_of(std::string_view token) const {
  Apply apply{std::string(token)};
  for (const DecoderStep& step : steps) std::visit(apply, step);
  return std::move(apply.text);
}

}  // namespace inferno
