// In which types a KV cache stores keys and values: what a user asks for, and what a device makes of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/matrix.h"

namespace inferno {

struct CacheTypes {
  DType keys = DType::f32, values = DType::f32;
  bool operator==(const CacheTypes&) const = default;
};

// "q8_0", or "q8_0,f16" if keys and values differ.
std::string name_of(CacheTypes types);

// Why heads of `head_dim` elements cannot be stored so, whatever the device, and what to use instead.
std::optional<Advice> refuses_head(CacheTypes types, int head_dim);

struct CacheChoice {
  std::optional<DType> keys, values;  // nullopt: what the device prefers, "auto"

  CacheTypes with_default(DType preferred) const {
    return {keys.value_or(preferred), values.value_or(preferred)};
  }
  bool is_auto() const { return !keys && !values; }
};

// In the words of the command line, such as "auto" or "q8_0,auto".
std::string name_of(const CacheChoice& choice);

// auto (nullopt), f32, f16, bf16, q8_0 or fp8, which is E4M3. Error{invalid_request} naming `origin`, an
// option or a field, for any other word.
std::optional<DType> parse_cache_type(std::string_view word, std::string_view origin);
// One word for keys and values, or two separated by a comma. Empty: auto.
CacheChoice parse_cache_choice(std::string_view text, std::string_view origin);

}  // namespace inferno
