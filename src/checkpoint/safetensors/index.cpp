#include "checkpoint/safetensors/index.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "checkpoint/json_events.h"

namespace inferno {
namespace {

constexpr int deepest = 16;
constexpr std::size_t max_tensors = 1u << 20;

class IndexReader final : public JsonEvents {
 public:
  explicit IndexReader(std::string_view origin) : origin_(origin) {}

  void start_object() override {
    ++depth_;
    if (in_map() && depth_ > 2) malformed();
  }

  void key(std::string name) override {
    if (depth_ == 1) {
      section_ = std::move(name);
      if (section_ == "weight_map" && std::exchange(has_map, true)) {
        fail(ErrorKind::corrupt, fmt::format("{}: \"weight_map\" is given twice", origin_));
      }
    } else if (in_map()) {
      tensor_ = std::move(name);
    }
  }

  void end_object() override { --depth_; }

  void start_array() override {
    if (depth_ == 0 || in_map()) malformed();
    ++depth_;
  }

  void end_array() override { --depth_; }

  void scalar(JsonScalar value) override {
    if (depth_ == 0) malformed();
    if (!in_map()) return;  // the metadata: sizes that only the writer cared about
    const auto* shard = std::get_if<std::string>(&value);
    if (depth_ != 2 || shard == nullptr) malformed();
    if (!is_plain_file_name(*shard) || !shard->ends_with(".safetensors")) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: expected the name of a .safetensors file in this directory for {}, found {}",
                       origin_, quote(tensor_), quote(*shard)),
           {.why = "a name that leads elsewhere could make Inferno read any file on this machine",
            .next = {}});
    }
    if (!shards.emplace(tensor_, *shard).second) {
      fail(ErrorKind::corrupt, fmt::format("{}: tensor {} is given twice", origin_, quote(tensor_)));
    }
    if (shards.size() > max_tensors) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected at most {} tensors", origin_, max_tensors));
    }
  }

  std::map<std::string, std::string> shards;
  bool has_map = false;

 private:
  bool in_map() const { return section_ == "weight_map"; }

  [[noreturn]] void malformed() const {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected an object whose \"weight_map\" maps tensor names to file names", origin_));
  }

  std::string_view origin_;
  int depth_ = 0;
  std::string section_, tensor_;
};

}  // namespace

std::map<std::string, std::string> parse_safetensors_index(std::string_view json, std::string_view origin) {
  IndexReader reader(origin);
  parse_json(json, origin, deepest, reader);
  if (reader.shards.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected a \"weight_map\" with tensors in it", origin));
  }
  return std::move(reader.shards);
}

}  // namespace inferno
