// The words in which quantized checkpoints are refused, and what Inferno does differently from their config.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

struct RefusedField {
  std::string origin;  // the file
  std::string field;
  std::string value;  // quoted; empty if there is none
  std::string why;
};

// Error{unsupported}: file, field, value, reason and what to use instead.
[[noreturn]] void refuse_quantization(const RefusedField& refused);

// For a method that no reader knows, with the reason where it is a known one.
[[noreturn]] void refuse_method(std::string_view origin, std::string_view field, std::string_view method);

std::string activation_note(std::string_view origin, std::string_view type);
std::string cache_note(std::string_view origin);

}  // namespace inferno
