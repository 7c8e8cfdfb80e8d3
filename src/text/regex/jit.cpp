#include "text/regex/jit.h"

#include <pcre2.h>

#include <memory>

namespace inferno {

bool has_regex_jit() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>("a+b"), PCRE2_ZERO_TERMINATED, 0, &error, &offset, nullptr),
      &pcre2_code_free);
  return code != nullptr && pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
}

}  // namespace inferno
