#include "cli/tokenizer_loading.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/error.h"
#include "checkpoint/gguf/reader.h"
#include "checkpoint/open_checkpoint.h"
#include "text/tokenizer_gguf.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> strings(const GgufMetadata& metadata, std::string_view key) {
  const auto views = metadata.strings(key);
  if (!views) return {};
  return {views->begin(), views->end()};
}

std::optional<TokenId> token_id(const GgufMetadata& metadata, std::string_view key) {
  const auto id = metadata.integer(key);
  if (!id) return std::nullopt;
  // Some converters write 2^32 - 1 for "none".
  if (*id == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  if (*id < 0 || *id > std::numeric_limits<TokenId>::max()) {
    fail(ErrorKind::corrupt, fmt::format("{}: {} is {}, which is no token", metadata.origin(), key, *id));
  }
  return static_cast<TokenId>(*id);
}

GgufVocabulary vocabulary_of(const GgufMetadata& metadata) {
  const auto model = metadata.text("tokenizer.ggml.model");
  if (!model) {
    fail(ErrorKind::corrupt, fmt::format("{}: no tokenizer.ggml.model, so no vocabulary", metadata.origin()),
         {.why = {}, .next = "the second and later parts of a split model have none: name the first part"});
  }
  GgufVocabulary vocabulary{.file = metadata.origin(),
                            .model = std::string(*model),
                            .pre = std::string(metadata.text("tokenizer.ggml.pre").value_or("")),
                            .tokens = strings(metadata, "tokenizer.ggml.tokens"),
                            .scores = {},
                            .token_types = {},
                            .merges = strings(metadata, "tokenizer.ggml.merges"),
                            .bos = token_id(metadata, "tokenizer.ggml.bos_token_id"),
                            .eos = token_id(metadata, "tokenizer.ggml.eos_token_id"),
                            .unknown = token_id(metadata, "tokenizer.ggml.unknown_token_id"),
                            .other_end_tokens = {},
                            .add_bos = metadata.flag("tokenizer.ggml.add_bos_token"),
                            .add_eos = metadata.flag("tokenizer.ggml.add_eos_token"),
                            .add_space_prefix = metadata.flag("tokenizer.ggml.add_space_prefix")};
  if (const auto scores = metadata.numbers("tokenizer.ggml.scores")) {
    for (const double score : *scores) vocabulary.scores.push_back(static_cast<float>(score));
  }
  if (const auto types = metadata.integers("tokenizer.ggml.token_type")) {
    for (const std::int64_t type : *types) {
      // Out of range stays out of range; the tokenizer names the entry.
      vocabulary.token_types.push_back(type < 0 || type > 100 ? -1 : static_cast<std::int32_t>(type));
    }
  }
  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = token_id(metadata, key)) vocabulary.other_end_tokens.push_back(*id);
  }
  return vocabulary;
}

std::optional<fs::path> first_gguf(const fs::path& directory) {
  std::optional<fs::path> first;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".gguf" && (!first || entry.path() < *first)) first = entry.path();
  }
  return first;
}

std::unique_ptr<Tokenizer> from_gguf(const fs::path& path) {
  return make_tokenizer(vocabulary_of(read_gguf_metadata(path)));
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& model) {
  if (fs::is_directory(model) && !fs::exists(model / "tokenizer.json")) {
    if (const auto gguf = first_gguf(model)) return from_gguf(*gguf);
  }
  return is_gguf_file(model) ? from_gguf(model) : load_tokenizer(model);
}

bool has_tokenizer(const fs::path& model) {
  if (!fs::is_directory(model)) return fs::exists(model);
  return fs::exists(model / "tokenizer.json") || first_gguf(model).has_value();
}

}  // namespace inferno
