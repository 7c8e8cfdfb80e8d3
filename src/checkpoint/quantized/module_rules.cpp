// Which modules a rule of a quantization config means.
#include "checkpoint/quantized/quantization_config.h"

namespace inferno {
namespace {

// Shell wildcards: '*' is any text, '?' any character. Looks back only to the latest '*', so that the time is
// at most the product of both lengths.
bool fits_wildcard(std::string_view text, std::string_view wildcard) {
  std::size_t t = 0, w = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (w < wildcard.size() && (wildcard[w] == '?' || wildcard[w] == text[t]) && wildcard[w] != '*') {
      ++t;
      ++w;
    } else if (w < wildcard.size() && wildcard[w] == '*') {
      star = w++;
      resume = t;
    } else if (star != std::string_view::npos) {
      w = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (w < wildcard.size() && wildcard[w] == '*') ++w;
  return w == wildcard.size();
}

// Whether `part` is one or more whole components of the dotted name: "mlp.gate" is not in "mlp.gate_proj".
bool has_components(std::string_view name, std::string_view part) {
  if (part.empty()) return false;
  for (std::size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

}  // namespace

bool QuantizationConfig::Rule::matches(std::string_view module) const {
  switch (match) {
    case Match::pattern: return pattern->matches(module);
    case Match::whole_name: return module == text;
    case Match::components: return has_components(module, text);
    case Match::wildcard: return fits_wildcard(module, text);
    case Match::linear: return true;
  }
  return false;
}

}  // namespace inferno
