// Flags of llama-server and vLLM, by what they are here. `inferno serve` takes the command lines of those
// programs: what has a counterpart works, what cannot matter is named in a note, and what would matter is
// refused with what to do instead.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace inferno {

enum class OtherFlagUse {
  ours,       // an option here has this name; listed because it is written with one dash
  renamed,    // an option here means the same: `advice` is its name
  no_effect,  // accepted with the note `advice`
  refused     // an error with `advice`
};

struct OtherFlag {
  std::string_view names;  // as those programs write them: "-cb,--cont-batching"
  OtherFlagUse use;
  std::string_view advice = {};
  // Of a flag without effect. Empty: it takes no value. Otherwise the values that change nothing: all of
  // "on,off", or any value for "*"; any other value is refused. A flag of "?on,off" may stand without a
  // value.
  std::string_view values = {};
};

std::span<const OtherFlag> flags_of_other_programs();

// The words of "a,b,c".
std::vector<std::string_view> words_of_list(std::string_view list);

// nullptr if they have no such flag. A value may follow the name: "-ngl=99".
const OtherFlag* find_flag_of_others(std::string_view argument);

// Whether the flag has several letters and one dash, such as -ngl, which would otherwise be read as -n gl.
bool is_long_with_one_dash(std::string_view argument);

// Whether `value` changes nothing for a flag without effect.
bool is_harmless(const OtherFlag& flag, std::string_view value);

}  // namespace inferno
