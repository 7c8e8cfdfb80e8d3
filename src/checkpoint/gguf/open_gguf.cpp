#include "checkpoint/gguf/open_gguf.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf/config.h"
#include "checkpoint/gguf/reader.h"

namespace inferno {
namespace {

// Each part keeps its file open; converters write a few dozen at most.
constexpr std::int64_t max_parts = 1024;

struct Part {
  std::string origin;
  std::shared_ptr<const ByteSource> source;
  std::shared_ptr<const GgufMetadata> metadata;
  std::vector<GgufTensor> tensors;
};

class GgufCheckpoint final : public Checkpoint {
 public:
  explicit GgufCheckpoint(std::vector<Part> parts)
      : tensors_(gather(parts)),
        metadata_(parts.front().metadata),
        architecture_(metadata_->text("general.architecture").value_or("")),
        config_(gguf_config(*metadata_, *this)) {}

  Container container() const override { return Container::gguf; }
  std::string_view architecture() const override { return architecture_; }
  const Config& config() const override { return config_; }
  const GgufMetadata& metadata() const { return *metadata_; }

  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }

 private:
  using Tensors = std::map<std::string, StoredTensor, std::less<>>;

  static Tensors gather(std::vector<Part>& parts) {
    Tensors tensors;
    for (Part& part : parts) {
      for (GgufTensor& tensor : part.tensors) {
        const auto [place, fresh] =
            tensors.emplace(std::move(tensor.name), StoredTensor{.format = tensor.format,
                                                                 .shape = std::move(tensor.shape),
                                                                 .source = part.source,
                                                                 .offset = tensor.offset,
                                                                 .bytes = tensor.bytes});
        if (!fresh) {
          fail(ErrorKind::corrupt,
               fmt::format("{}: tensor {} is also in an earlier part", part.origin, quote(place->first)));
        }
      }
    }
    return tensors;
  }

  Tensors tensors_;
  std::shared_ptr<const GgufMetadata> metadata_;
  std::string architecture_;
  Config config_;  // last: its construction uses the members above
};

Part read_part(std::shared_ptr<const ByteSource> source, std::string origin,
               std::shared_ptr<const GgufMetadata> parsed = nullptr) {
  if (!parsed || parsed->origin() != origin) {
    parsed = std::make_shared<const GgufMetadata>(read_gguf_metadata(*source, origin));
  }
  std::vector<GgufTensor> tensors = read_gguf_tensors(*source, *parsed);
  return {std::move(origin), std::move(source), std::move(parsed), std::move(tensors)};
}

// The metadata of a part must agree with its file name.
void check_part(const Part& part, int number, int count) {
  const auto index = part.metadata->integer("split.no");
  const auto parts = part.metadata->integer("split.count");
  if (index != number - 1 || parts != count) {
    fail(
        ErrorKind::corrupt,
        fmt::format("{}: expected part {} of {}, found split.no {} and split.count {}", part.origin, number,
                    count, index.value_or(-1), parts.value_or(-1)),
        {.why = "the parts were renamed, or belong to different models", .next = "download all parts again"});
  }
}

void check_tensor_count(const std::vector<Part>& parts) {
  const auto expected = parts.front().metadata->integer("split.tensors.count");
  std::size_t found = 0;
  for (const Part& part : parts) found += part.tensors.size();
  if (expected && static_cast<std::size_t>(*expected) != found) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected {} tensors in {} parts, found {}",
                                         parts.front().origin, *expected, parts.size(), found));
  }
}

std::vector<Part> read_parts(const std::filesystem::path& path, std::shared_ptr<const GgufMetadata> parsed) {
  const auto name = parse_gguf_split_name(path.filename().string());
  if (name && name->number != 1) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: this is part {} of {}", path.string(), name->number, name->count),
         {.why = {}, .next = "open the first part, " + gguf_split_name(name->stem, 1, name->count)});
  }
  std::vector<Part> parts;
  parts.push_back(read_part(open_file(path), path.string(), std::move(parsed)));
  const std::int64_t count = parts.front().metadata->integer("split.count").value_or(1);
  if (count > max_parts) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: expected at most {} parts, found {}", path.string(), max_parts, count));
  }
  if (count <= 1 && (!name || name->count == 1)) return parts;
  if (!name || name->count != count) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: its header says that it is one of {} parts, its name does not", path.string(),
                     count),
         {.why = "the other parts are found by their names",
          .next =
              "restore its original name, which ends in " + gguf_split_name("", 1, static_cast<int>(count))});
  }
  check_part(parts.front(), 1, name->count);
  for (int number = 2; number <= name->count; ++number) {
    const auto file = path.parent_path() / gguf_split_name(name->stem, number, name->count);
    parts.push_back(read_part(open_file(file), file.string()));
    check_part(parts.back(), number, name->count);
  }
  check_tensor_count(parts);
  return parts;
}

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool complete = problem == std::errc() && end == text.data() + text.size();
  return complete && value >= 1 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<GgufSplitName> parse_gguf_split_name(std::string_view file_name) {
  constexpr std::string_view pattern = "-00000-of-00000.gguf";
  if (file_name.size() < pattern.size()) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - pattern.size());
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number > *count || tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  return GgufSplitName{std::string(file_name.substr(0, file_name.size() - pattern.size())), *number, *count};
}

std::string gguf_split_name(std::string_view stem, int number, int count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, count);
}

std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path,
                                      std::shared_ptr<const GgufMetadata> parsed) {
  return std::make_unique<GgufCheckpoint>(read_parts(path, std::move(parsed)));
}

std::unique_ptr<Checkpoint> open_gguf(std::shared_ptr<const ByteSource> source, const std::string& origin) {
  std::vector<Part> parts;
  parts.push_back(read_part(std::move(source), origin));
  if (parts.front().metadata->integer("split.count").value_or(1) > 1) {
    fail(ErrorKind::unsupported, fmt::format("{}: one part of a split model", origin));
  }
  return std::make_unique<GgufCheckpoint>(std::move(parts));
}

const GgufMetadata* gguf_metadata(const Checkpoint& checkpoint) {
  const auto* gguf = dynamic_cast<const GgufCheckpoint*>(&checkpoint);
  return gguf == nullptr ? nullptr : &gguf->metadata();
}

}  // namespace inferno
