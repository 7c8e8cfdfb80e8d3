#include "hub/names/file_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/names/gguf_file_name.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

bool is_root_level(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

// Weights in a format that runs code when loaded, or that is for other programs.
bool is_foreign_weights(std::string_view path) {
  const std::string small = lower_case(path);
  constexpr std::array<std::string_view, 12> endings = {".bin",     ".pth",     ".pt",  ".ckpt",
                                                        ".msgpack", ".h5",      ".ot",  ".onnx",
                                                        ".tflite",  ".mlmodel", ".npz", ".pkl"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view end) { return small.ends_with(end); });
}

bool is_safetensors(std::string_view path) {
  return lower_case(path).ends_with(".safetensors");
}

// model.safetensors and model-00001-of-00002.safetensors, the files that open_checkpoint() reads.
bool is_main_weights(std::string_view path) {
  return is_root_level(path) && is_safetensors(path) &&
         (path == "model.safetensors" || path.starts_with("model-"));
}

struct Listing {
  std::vector<HubFile> files;  // safe, sorted
  bool has_root_safetensors = false, has_main_weights = false, has_gguf = false;
};

Listing read_listing(std::span<const HubFile> listing, FileSelection& selection) {
  Listing read;
  for (const HubFile& file : listing) {
    if (const std::string reason = unsafe_reason(file.path); !reason.empty()) {
      selection.skipped.push_back({file, "unsafe file name: " + reason});
      continue;
    }
    read.files.push_back(file);
    if (is_root_level(file.path) && is_safetensors(file.path)) read.has_root_safetensors = true;
    if (is_main_weights(file.path)) read.has_main_weights = true;
    if (is_gguf(file.path) && !read_gguf_name(file.path).is_companion) read.has_gguf = true;
  }
  std::sort(read.files.begin(), read.files.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  return read;
}

// Two files with the same name, or a file that is also a folder, cannot both be written.
void refuse_clashes(const std::vector<HubFile>& taken) {
  std::unordered_set<std::string_view> names;
  for (const HubFile& file : taken) {
    if (!names.insert(file.path).second) {
      fail(ErrorKind::corrupt, fmt::format("{}: listed twice", quote(file.path)));
    }
  }
  for (const HubFile& file : taken) {
    const std::string_view path = file.path;
    for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
      if (names.contains(path.substr(0, at))) {
        fail(ErrorKind::corrupt,
             fmt::format("{}: listed as a file and as a folder", quote(path.substr(0, at))));
      }
    }
  }
}

// Why a file of a safetensors model is skipped; empty if it is selected.
std::string safetensors_reason(const HubFile& file, const Listing& listing) {
  const std::string_view path = file.path;
  const std::string small = lower_case(path);
  if (!is_root_level(path)) {
    const std::string folder = small.substr(0, small.find('/'));
    if (folder == "original" || folder == "metal") return "another copy of the weights";
    if (folder == "onnx" || folder == "openvino" || folder == "coreml") return "weights for other programs";
    return "in a subfolder; the model is at the top level";
  }
  if (is_foreign_weights(path)) return "weights in an unsupported format";
  if (is_gguf(path)) return "a GGUF copy of the weights; ask for it with :QUANT";
  if (is_safetensors(path)) {
    if (listing.has_main_weights && !is_main_weights(path)) return "another copy of the weights";
    return "";
  }
  const bool useful = small.ends_with(".json") || small == "tokenizer.model" || small.ends_with(".jinja") ||
                      small.ends_with(".tiktoken") || is_document(path);
  return useful ? "" : "not needed to run the model";
}

// The parts of every GGUF model, sorted by name.
std::map<std::string, std::vector<HubFile>> gguf_groups(const Listing& listing) {
  std::map<std::string, std::vector<HubFile>> groups;
  for (const HubFile& file : listing.files) {
    if (!is_gguf(file.path)) continue;
    const GgufFileName name = read_gguf_name(file.path);
    // The number of parts is in the key: a model that is split in two ways is two models.
    if (!name.is_companion) groups[fmt::format("{}/{:05}", name.group, name.parts)].push_back(file);
  }
  return groups;
}

using Group = std::map<std::string, std::vector<HubFile>>::value_type;

const Group* best_match(const std::map<std::string, std::vector<HubFile>>& groups, std::string_view quant) {
  const Group* best = nullptr;
  for (const Group& group : groups) {
    if (!matches_quant(read_gguf_name(group.second.front().path), quant)) continue;
    // "x-Q4_K_M" before "x-UD-Q4_K_M" when Q4_K_M is asked for.
    if (best == nullptr || group.first.size() < best->first.size()) best = &group;
  }
  return best;
}

std::string available_quants(const std::map<std::string, std::vector<HubFile>>& groups) {
  std::set<std::string> names;
  for (const Group& group : groups) {
    const GgufFileName name = read_gguf_name(group.second.front().path);
    names.insert(printable(name.quant.empty() ? name.stem : name.quant));
    if (names.size() == 20) break;
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const Group& chosen_group(const std::map<std::string, std::vector<HubFile>>& groups,
                          const SelectionRules& rules) {
  const std::string& quant = rules.quant;
  if (quant.empty()) {
    for (const std::string_view preferred : {"Q4_K_M", "Q8_0"}) {
      if (const Group* group = best_match(groups, preferred)) return *group;
    }
    return *groups.begin();
  }
  if (const Group* group = best_match(groups, quant)) return *group;
  fail(ErrorKind::not_found,
       fmt::format("{} has no {}; {}", rules.model, printable(quant),
                   groups.empty() ? "it has no GGUF files" : "available: " + available_quants(groups)),
       {.why = {}, .next = groups.empty() ? "leave out the ':' and the quantization" : ""});
}

void check_parts(const std::vector<HubFile>& parts) {
  const GgufFileName first = read_gguf_name(parts.front().path);
  if (parts.size() == static_cast<std::size_t>(first.parts)) return;
  fail(ErrorKind::corrupt,
       fmt::format("{}: the list has {} parts, the file name says {}", quote(first.group), parts.size(),
                   first.parts),
       {.why = "a split model needs all of its parts", .next = "choose another quantization"});
}

void select_gguf(const Listing& listing, const SelectionRules& rules, FileSelection& selection) {
  const auto groups = gguf_groups(listing);
  const Group& chosen = chosen_group(groups, rules);
  check_parts(chosen.second);
  selection.format = ModelFormat::gguf;
  selection.quant = read_gguf_name(chosen.second.front().path).quant;
  std::unordered_set<std::string_view> wanted;
  for (const HubFile& file : chosen.second) wanted.insert(file.path);
  for (const HubFile& file : listing.files) {
    if (wanted.contains(file.path) || is_document(file.path)) {
      selection.taken.push_back(file);
    } else if (!is_gguf(file.path)) {
      selection.skipped.push_back({file, "the GGUF file contains everything needed"});
    } else if (read_gguf_name(file.path).is_companion) {
      selection.skipped.push_back({file, "an accessory file, not the model"});
    } else {
      selection.skipped.push_back({file, "another quantization"});
    }
  }
}

void select_by_rules(const Listing& listing, const SelectionRules& rules, FileSelection& selection) {
  if (listing.has_root_safetensors && rules.quant.empty()) {
    selection.format = ModelFormat::safetensors;
    for (const HubFile& file : listing.files) {
      const std::string reason = safetensors_reason(file, listing);
      if (reason.empty()) {
        selection.taken.push_back(file);
      } else {
        selection.skipped.push_back({file, reason});
      }
    }
    return;
  }
  if (listing.has_gguf || !rules.quant.empty()) return select_gguf(listing, rules, selection);
  const auto foreign = std::find_if(listing.files.begin(), listing.files.end(),
                                    [](const HubFile& file) { return is_foreign_weights(file.path); });
  fail(
      ErrorKind::unsupported, rules.model + " has no weights in a supported format",
      {.why = foreign == listing.files.end()
                  ? fmt::format("none of its {} files is .safetensors or .gguf", listing.files.size())
                  : fmt::format("it has {}; only .safetensors and .gguf are supported", quote(foreign->path)),
       .next = "look for another version: inferno search NAME --format safetensors"});
}

void select_path(const Listing& listing, const std::string& path, FileSelection& selection) {
  const bool is_split = is_gguf(path) && read_gguf_name(path).parts > 1;
  const GgufFileName wanted = is_split ? read_gguf_name(path) : GgufFileName{};
  for (const HubFile& file : listing.files) {
    const bool is_part = is_split && is_gguf(file.path) && read_gguf_name(file.path).group == wanted.group &&
                         read_gguf_name(file.path).parts == wanted.parts;
    if (file.path == path || is_part) {
      selection.taken.push_back(file);
    } else {
      selection.skipped.push_back({file, "not the requested file"});
    }
  }
  if (selection.taken.empty()) {
    fail(ErrorKind::not_found, fmt::format("{}: the model has no such file", quote(path)),
         {.why = fmt::format("it has {} files", listing.files.size()), .next = "check the name"});
  }
  if (is_split) check_parts(selection.taken);
}

bool matches_any(const HubFile& file, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(file.path, pattern); });
}

void select_by_patterns(const Listing& listing, const SelectionRules& rules, FileSelection& selection) {
  for (const HubFile& file : listing.files) {
    if (matches_any(file, rules.include)) {
      selection.taken.push_back(file);
    } else {
      selection.skipped.push_back({file, "matches no --include"});
    }
  }
  if (selection.taken.empty()) {
    fail(ErrorKind::not_found, fmt::format("no file matches {}", fmt::join(rules.include, " or ")),
         {.why = fmt::format("the model has {} files", listing.files.size()), .next = "check the patterns"});
  }
}

void drop_excluded(const SelectionRules& rules, FileSelection& selection) {
  const auto kept =
      std::stable_partition(selection.taken.begin(), selection.taken.end(),
                            [&](const HubFile& file) { return !matches_any(file, rules.exclude); });
  for (auto file = kept; file != selection.taken.end(); ++file) {
    selection.skipped.push_back({*file, "matches --exclude"});
  }
  selection.taken.erase(kept, selection.taken.end());
}

// If the rules did not set the format, the files do.
void note_format(FileSelection& selection) {
  if (selection.format != ModelFormat::other) return;
  for (const HubFile& file : selection.taken) {
    if (is_safetensors(file.path)) selection.format = ModelFormat::safetensors;
    if (is_gguf(file.path) && selection.format == ModelFormat::other) {
      selection.format = ModelFormat::gguf;
      selection.quant = read_gguf_name(file.path).quant;
    }
  }
}

// Whether `letter` is in the set that begins at pattern[at] == '['; moves `at` past the set. nullopt if the
// bracket is never closed and therefore is an ordinary character.
std::optional<bool> in_set(char letter, std::string_view pattern, std::size_t& at) {
  std::size_t from = at + 1;
  const bool negated = from < pattern.size() && (pattern[from] == '!' || pattern[from] == '^');
  if (negated) ++from;
  const std::size_t end = from < pattern.size() ? pattern.find(']', from + 1) : std::string_view::npos;
  if (end == std::string_view::npos) return std::nullopt;
  bool found = false;
  for (std::size_t i = from; i < end; ++i) {
    const bool is_range = i + 2 < end && pattern[i + 1] == '-';
    const char last = is_range ? pattern[i + 2] : pattern[i];
    if (letter >= pattern[i] && letter <= last) found = true;
    if (is_range) i += 2;
  }
  at = end + 1;
  return found != negated;
}

// Whether `letter` matches one pattern element other than a star; moves `at` past the element.
bool matches_one(char letter, std::string_view pattern, std::size_t& at) {
  if (pattern[at] == '?') {
    ++at;
    return true;
  }
  if (pattern[at] == '[') {
    if (const auto found = in_set(letter, pattern, at)) return *found;
  }
  return pattern[at++] == letter;
}

}  // namespace

// Backtracks to the last star only, so the time is bounded by the product of the lengths.
bool matches_pattern(std::string_view path, std::string_view pattern) {
  const std::string all_below = pattern.ends_with('/') ? std::string(pattern) + "*" : std::string(pattern);
  pattern = all_below;
  constexpr std::size_t none = std::string_view::npos;
  std::size_t letter = 0, at = 0, star = none, star_letter = 0;
  while (letter < path.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_letter = letter;
      continue;
    }
    std::size_t next = at;
    if (at < pattern.size() && matches_one(path[letter], pattern, next)) {
      at = next;
      ++letter;
    } else if (star != none) {
      at = star;
      letter = ++star_letter;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(at), pattern.end(),
                     [](char c) { return c == '*'; });
}

bool is_document(std::string_view path) {
  const std::string small = lower_case(path);
  return is_root_level(path) && (small.starts_with("license") || small.starts_with("readme") ||
                                 small.starts_with("notice") || small.starts_with("usage_policy"));
}

std::uint64_t FileSelection::bytes() const {
  std::unordered_set<std::string_view> seen;
  std::uint64_t total = 0;
  for (const HubFile& file : taken) {
    if (file.etag().empty() || seen.insert(file.etag()).second) total += file.size;
  }
  return total;
}

std::string_view name_of(ModelFormat format) {
  switch (format) {
    case ModelFormat::safetensors: return "safetensors";
    case ModelFormat::gguf: return "gguf";
    case ModelFormat::other: return "other";
  }
  return "other";
}

FileSelection select_files(std::span<const HubFile> listing, const SelectionRules& rules) {
  FileSelection selection;
  const Listing read = read_listing(listing, selection);
  if (!rules.include.empty()) {
    select_by_patterns(read, rules, selection);
  } else if (!rules.path.empty()) {
    select_path(read, rules.path, selection);
  } else {
    select_by_rules(read, rules, selection);
  }
  drop_excluded(rules, selection);
  refuse_clashes(selection.taken);
  note_format(selection);
  if (selection.taken.empty()) fail(ErrorKind::not_found, "no files left: --exclude matches all of them");
  return selection;
}

std::vector<HubFile> safetensors_files(std::span<const HubFile> listing) {
  FileSelection selection;
  const Listing read = read_listing(listing, selection);
  if (!read.has_root_safetensors) return {};
  for (const HubFile& file : read.files) {
    if (safetensors_reason(file, read).empty()) selection.taken.push_back(file);
  }
  return selection.taken;
}

std::vector<std::vector<HubFile>> gguf_models(std::span<const HubFile> listing) {
  FileSelection ignored;
  std::vector<std::vector<HubFile>> models;
  for (auto& [name, parts] : gguf_groups(read_listing(listing, ignored))) models.push_back(std::move(parts));
  return models;
}

}  // namespace inferno::hub
