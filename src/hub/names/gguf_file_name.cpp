#include "hub/names/gguf_file_name.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace inferno::hub {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "q4_k_m", "iq2_xxs", "tq1_0", "bf16", "mxfp4_moe" and the like.
bool is_quant(std::string_view word) {
  for (const std::string_view plain : {"f16", "bf16", "f32", "fp16", "fp32"}) {
    if (word == plain) return true;
  }
  if (word.starts_with("mxfp4") || word.starts_with("nvfp4")) return true;
  for (const std::string_view family : {"iq", "tq", "q"}) {
    if (!word.starts_with(family)) continue;
    const std::string_view rest = word.substr(family.size());
    return !rest.empty() && is_digit(rest[0]) && (rest.size() == 1 || rest[1] == '_');
  }
  return false;
}

// The last word of the stem that is a quantization, with Unsloth's prefix "UD-" if it has one.
std::string quant_in(std::string_view stem) {
  for (std::size_t end = stem.size(); end > 0;) {
    const std::size_t border = stem.find_last_of("-.", end - 1);
    const std::size_t begin = border == std::string_view::npos ? 0 : border + 1;
    if (is_quant(lower_case(stem.substr(begin, end - begin)))) {
      const bool is_dynamic = begin >= 3 && lower_case(stem.substr(begin - 3, 3)) == "ud-" &&
                              (begin == 3 || stem[begin - 4] == '-' || stem[begin - 4] == '.');
      return std::string(stem.substr(is_dynamic ? begin - 3 : begin, end - (is_dynamic ? begin - 3 : begin)));
    }
    if (border == std::string_view::npos) break;
    end = border;
  }
  return "";
}

// Removes "-00002-of-00003" from the end of `group` and sets the part; parts stays 1 without such an ending.
void take_part(GgufFileName& name) {
  constexpr std::size_t length = std::string_view("-00001-of-00003").size();
  const std::string& group = name.group;
  if (group.size() <= length) return;
  const std::string_view tail = std::string_view(group).substr(group.size() - length);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return;
  if (!std::all_of(tail.begin() + 1, tail.begin() + 6, is_digit) ||
      !std::all_of(tail.begin() + 10, tail.end(), is_digit)) {
    return;
  }
  int part = 0, parts = 0;
  std::from_chars(tail.data() + 1, tail.data() + 6, part);
  std::from_chars(tail.data() + 10, tail.data() + length, parts);
  if (part < 1 || parts < part) return;
  name.part = part;
  name.parts = parts;
  name.group.resize(group.size() - length);
}

}  // namespace

bool is_gguf(std::string_view path) {
  return lower_case(path).ends_with(".gguf");
}

GgufFileName read_gguf_name(std::string_view path) {
  GgufFileName name;
  name.group = path.substr(0, path.size() - std::string_view(".gguf").size());
  take_part(name);
  const std::size_t slash = name.group.rfind('/');
  name.stem = slash == std::string::npos ? name.group : name.group.substr(slash + 1);
  name.quant = quant_in(name.stem);
  if (name.quant.empty() && slash != std::string::npos) {
    const std::string folder = name.group.substr(0, slash);
    name.quant = quant_in(folder.substr(folder.rfind('/') + 1));
  }
  const std::string small = lower_case(name.stem);
  name.is_companion = small.find("mmproj") != std::string::npos ||
                      small.find("imatrix") != std::string::npos || small.starts_with("mtp-");
  return name;
}

bool matches_quant(const GgufFileName& file, std::string_view wanted) {
  const std::string small = lower_case(wanted), stem = lower_case(file.stem);
  const std::string bare = small.ends_with(".gguf") ? small.substr(0, small.size() - 5) : small;
  if (bare.empty()) return false;
  if (lower_case(file.quant) == bare || stem == bare) return true;
  if (!stem.ends_with(bare)) return false;
  const char before = stem[stem.size() - bare.size() - 1];
  return before == '-' || before == '.' || before == '_';
}

}  // namespace inferno::hub
