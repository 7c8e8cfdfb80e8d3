#include "text/json/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_file = 16ULL << 20;
constexpr std::int64_t max_id = 1 << 24;

std::unique_ptr<JsonDocument> open_json(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  return std::make_unique<JsonDocument>(read_file(path, max_file), path.string());
}

// "</s>" or {"content": "</s>", …}
std::string token_text(const JsonValue& json) {
  return std::string(json.raw().IsObject() ? json["content"].text() : json.text());
}

void add_unique(std::vector<std::string>& to, std::string text) {
  if (!text.empty() && std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

void read_names(SpecialTokenSettings& to, const JsonValue& json) {
  const auto named = [&](const char* name) -> std::optional<std::string> {
    const auto found = json.find(name);
    if (!found) return std::nullopt;
    add_unique(to.special, token_text(*found));
    return token_text(*found);
  };
  if (const auto bos = named("bos_token"); bos && !to.bos) to.bos = bos;
  if (const auto eos = named("eos_token"); eos && !to.eos) to.eos = eos;
  named("unk_token");
  named("pad_token");
  const auto additional = json.find("additional_special_tokens");
  for (std::size_t i = 0; additional && i < additional->size(); ++i)
    add_unique(to.special, token_text((*additional)[i]));
}

void read_added_tokens_decoder(SpecialTokenSettings& to, const JsonValue& json) {
  const auto tokens = json.find("added_tokens_decoder");
  if (!tokens) return;
  for (const auto& member : tokens->object().raw().GetObject()) {
    const std::string_view name = text_of(member.name);
    TokenId id = -1;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), id);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size() || id < 0) {
      fail(ErrorKind::corrupt, fmt::format("{}: {} is not a token id", tokens->where(), quote(name)));
    }
    to.added.push_back(
        read_added_token(JsonValue(member.value, fmt::format("{}.{}", tokens->where(), id)), id));
  }
}

// An id or a list of ids.
void read_end_ids(SpecialTokenSettings& to, const JsonValue& json) {
  const auto ids = json.find("eos_token_id");
  if (!ids) return;
  if (!ids->raw().IsArray()) {
    to.end_ids.push_back(read_token_id(*ids));
    return;
  }
  for (std::size_t i = 0; i < ids->size(); ++i) to.end_ids.push_back(read_token_id((*ids)[i]));
}

}  // namespace

AddedToken read_added_token(const JsonValue& json, TokenId id) {
  const JsonValue content = json["content"];
  if (content.text().size() > longest_added_token) {
    fail(ErrorKind::unsupported, fmt::format("{}: {} bytes, at most {} are accepted", content.where(),
                                             content.text().size(), longest_added_token));
  }
  return {.id = id,
          .content = std::string(content.text()),
          .single_word = json.flag("single_word", false),
          .lstrip = json.flag("lstrip", false),
          .rstrip = json.flag("rstrip", false),
          .normalized = json.flag("normalized", true),
          .special = json.flag("special", false)};
}

TokenId read_token_id(const JsonValue& json) {
  const std::int64_t id = json.integer();
  if (id < 0 || id >= max_id)
    fail(ErrorKind::corrupt, fmt::format("{}: {} is not a token id", json.where(), id));
  return static_cast<TokenId>(id);
}

SpecialTokenSettings read_settings(const std::filesystem::path& model_directory) {
  SpecialTokenSettings settings;
  if (const auto document = open_json(model_directory / "tokenizer_config.json")) {
    const JsonValue root = document->root();
    read_names(settings, root);
    read_added_tokens_decoder(settings, root);
    settings.add_bos = root.flag("add_bos_token", false);
    settings.add_eos = root.flag("add_eos_token", false);
  }
  if (const auto document = open_json(model_directory / "special_tokens_map.json")) {
    read_names(settings, document->root());
  }
  if (const auto document = open_json(model_directory / "generation_config.json")) {
    read_end_ids(settings, document->root());
  }
  if (settings.end_ids.empty()) {
    if (const auto document = open_json(model_directory / "config.json"))
      read_end_ids(settings, document->root());
  }
  return settings;
}

}  // namespace inferno
