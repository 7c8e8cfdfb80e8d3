#include "checkpoint/config_json.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "checkpoint/json_events.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_file = 16u << 20;
constexpr int max_depth = 32;
// Flattening repeats the key of an object for each of its values, so the number of values and the length of a
// path both need a limit.
constexpr std::size_t max_values = 65536;
constexpr std::size_t max_path_bytes = 512;

// A list being read. `other` is set if its elements are not all numbers or all strings.
struct OpenList {
  std::vector<double> numbers;
  std::vector<std::string> texts;
  bool other = false;
  int depth = 0;  // number of open lists and objects inside the list

  void add(JsonScalar&& value) {
    if (auto* text = std::get_if<std::string>(&value); text != nullptr && numbers.empty()) {
      texts.push_back(std::move(*text));
    } else if (const auto* whole = std::get_if<std::uint64_t>(&value); whole != nullptr && texts.empty()) {
      numbers.push_back(static_cast<double>(*whole));
    } else if (const auto* number = std::get_if<double>(&value); number != nullptr && texts.empty()) {
      numbers.push_back(*number);
    } else {
      other = true;
    }
  }
};

class Flattener final : public JsonEvents {
 public:
  explicit Flattener(std::string_view origin) : origin_(origin) {}

  void start_object() override {
    if (list_) {
      list_->other = true;
      ++list_->depth;
    } else {
      open_object();
    }
  }

  void key(std::string name) override {
    if (list_) return;
    path_.resize(parents_.back());
    if (!path_.empty()) path_ += '.';
    path_ += name;
    if (path_.size() > max_path_bytes) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected names of at most {} bytes, found {}", origin_,
                                           max_path_bytes, quote(path_)));
    }
    if (!seen_.insert(path_).second) {
      fail(ErrorKind::corrupt, fmt::format("{}: duplicate key {}", origin_, quote(path_)));
    }
    if (seen_.size() > max_values) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected at most {} values", origin_, max_values));
    }
  }

  void end_object() override {
    if (list_) {
      --list_->depth;
    } else {
      parents_.pop_back();
    }
  }

  void start_array() override {
    require_object();
    if (list_) {
      list_->other = true;
      ++list_->depth;
    } else {
      list_.emplace();
    }
  }

  void end_array() override {
    if (list_->depth > 0) {
      --list_->depth;
      return;
    }
    if (list_->other) {
      others.push_back(path_);
    } else if (!list_->texts.empty()) {
      values.emplace(path_, std::move(list_->texts));
    } else {
      values.emplace(path_, std::move(list_->numbers));
    }
    list_.reset();
  }

  void scalar(JsonScalar value) override {
    require_object();
    if (list_) {
      if (!list_->other) list_->add(std::move(value));
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      values.emplace(path_, *flag);
    } else if (const auto* whole = std::get_if<std::uint64_t>(&value)) {
      values.emplace(path_, static_cast<double>(*whole));
    } else if (const auto* number = std::get_if<double>(&value)) {
      values.emplace(path_, *number);
    } else if (auto* text = std::get_if<std::string>(&value)) {
      values.emplace(path_, std::move(*text));
    } else {
      nulls.push_back(path_);
    }
  }

  Config::Values values;
  std::vector<std::string> others, nulls;

 private:
  void open_object() { parents_.push_back(path_.size()); }

  void require_object() const {
    if (parents_.empty()) fail(ErrorKind::corrupt, fmt::format("{}: expected a JSON object", origin_));
  }

  std::string_view origin_;
  std::string path_;                  // of the next value
  std::vector<std::size_t> parents_;  // length of path_ at each open object
  std::optional<OpenList> list_;      // the outermost list being read
  std::set<std::string> seen_;
};

constexpr std::string_view newer = "rope_parameters.";
constexpr std::string_view older = "rope_scaling.";

// The older name of a field of "rope_parameters".
std::string older_name(std::string_view field) {
  if (field == "rope_theta" || field == "partial_rotary_factor") return std::string(field);
  if (field == "type") return "rope_scaling.rope_type";
  return std::string(older) + std::string(field);
}

void move(Config::Values& values, std::string_view from, const std::string& to, std::string_view origin) {
  if (from == to) return;
  auto taken = values.extract(values.find(from));
  const auto [place, fresh] = values.try_emplace(to, taken.mapped());
  if (!fresh && place->second != taken.mapped()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} and {} contradict each other", origin, quote(from), quote(to)));
  }
}

std::vector<std::string> keys_under(const Config::Values& values, std::string_view prefix) {
  std::vector<std::string> keys;
  for (auto at = values.lower_bound(prefix); at != values.end() && at->first.starts_with(prefix); ++at) {
    keys.push_back(at->first);
  }
  return keys;
}

bool is_per_layer_type(std::string_view field) {
  return field.find('.') != std::string_view::npos;
}

// The RoPE parameters have had several places in config.json; architectures read only the oldest. Moves the
// fields of the newer "rope_parameters", and of "rope_scaling", to "rope_theta", "partial_rotary_factor" and
// "rope_scaling.*", with the type in "rope_scaling.rope_type", which is absent without scaling. Parameters
// per layer type keep their names and stay unread. Error{corrupt} if two places disagree.
void use_older_rope_names(Config::Values& values, std::vector<std::string>& others, std::string_view origin) {
  for (const std::string_view prefix : {newer, older}) {
    for (const std::string& key : keys_under(values, prefix)) {
      const std::string_view field = std::string_view(key).substr(prefix.size());
      if (!is_per_layer_type(field)) move(values, key, older_name(field), origin);
    }
  }
  for (std::string& key : others) {
    const std::string_view field = std::string_view(key).substr(std::min(newer.size(), key.size()));
    if (key.starts_with(newer) && !is_per_layer_type(field)) key = std::string(older) + std::string(field);
  }
  const auto kind = values.find("rope_scaling.rope_type");
  if (kind == values.end() || kind->second != Config::Value(std::string("default"))) return;
  values.erase(kind);
  const std::string context = "rope_scaling.original_max_position_embeddings";
  if (values.contains(context)) move(values, context, "original_max_position_embeddings", origin);
}

}  // namespace

Config parse_config(std::string_view json, std::string origin) {
  if (json.size() > max_file) {
    fail(ErrorKind::unsupported, fmt::format("{}: larger than the limit of {} bytes", origin, max_file));
  }
  Flattener flattener(origin);
  parse_json(json, origin, max_depth, flattener);
  use_older_rope_names(flattener.values, flattener.others, origin);
  return Config(std::move(flattener.values), std::move(origin), std::move(flattener.others),
                std::move(flattener.nulls));
}

Config read_config(const std::filesystem::path& path) {
  return parse_config(read_file(path, max_file), path.string());
}

}  // namespace inferno
