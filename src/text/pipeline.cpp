#include "text/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace inferno {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct ApplyDecoder {
  std::string text;

  void operator()(const decode::ReadBytes&) {
    if (auto bytes = byte_alphabet::read(text)) text = std::move(*bytes);
  }
  void operator()(const decode::ByteFallback&) {
    if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return;
    const int high = hex_digit(text[3]);
    const int low = hex_digit(text[4]);
    if (high >= 0 && low >= 0) text = std::string(1, static_cast<char>(high * 16 + low));
  }
  void operator()(const decode::Replace& step) {
    for (std::size_t at = text.find(step.pattern); at != std::string::npos;
         at = text.find(step.pattern, at + step.content.size())) {
      text.replace(at, step.pattern.size(), step.content);
    }
  }
  void operator()(const decode::Strip& step) {
    for (int i = 0; i < step.start && text.starts_with(step.content); ++i) text.erase(0, step.content.size());
    for (int i = 0; i < step.stop && text.ends_with(step.content); ++i)
      text.resize(text.size() - step.content.size());
  }
  void operator()(const decode::Prepend& step) { text.insert(0, step.text); }
};

}  // namespace

std::string TokenDecoder::bytes_of(std::string_view token) const {
  ApplyDecoder apply{std::string(token)};
  for (const DecoderStep& step : steps) std::visit(apply, step);
  return std::move(apply.text);
}

namespace {

// Where the tokens of a text are collected.
struct Encoding {
  std::size_t max_tokens;
  std::size_t max_piece;  // bytes that one token may stand for in normalized text; 0: any number
  std::vector<TokenId> ids = {};
  RegexScratch scratch = {};
  bool is_full = false;  // there are more than max_tokens

  void add(TokenId token) {
    ids.push_back(token);
    is_full = ids.size() > max_tokens;
  }
};

class ModelSink final : public PieceSink {
 public:
  ModelSink(const SubwordModel& model, Encoding& to) : model_(model), to_(to) { is_full_ = to.is_full; }

  void take(std::string_view piece) override {
    // A long piece is not encoded to learn that it is too long.
    const bool is_too_long =
        to_.max_piece > 0 && piece.size() / to_.max_piece > to_.max_tokens - to_.ids.size();
    if (!is_too_long) model_.encode(to_.ids, piece, to_.max_tokens);
    is_full_ = to_.is_full = is_too_long || to_.ids.size() > to_.max_tokens;
  }

 private:
  const SubwordModel& model_;
  Encoding& to_;
};

// The parts of `ranges` inside `window`, relative to its beginning.
Ranges inside(const Ranges& ranges, Range window) {
  Ranges found;
  auto at = std::ranges::upper_bound(ranges, window.begin, {}, &Range::end);
  for (; at != ranges.end() && at->begin < window.end; ++at) {
    found.push_back({.begin = std::max(at->begin, window.begin) - window.begin,
                     .end = std::min(at->end, window.end) - window.begin});
  }
  return found;
}

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(TokenizerParts parts);

  std::optional<std::vector<TokenId>> encode_within(std::span<const TextSpan> spans,
                                                    std::size_t max_tokens) const override;
  std::size_t max_token_bytes() const override { return max_token_bytes_; }
  std::optional<TokenId> first_control(std::string_view text) const override;
  std::vector<TokenId> add_special(std::vector<TokenId> ids) const override;
  std::string_view bytes(TokenId token) const override;
  DecodeStyle decode_style() const override { return parts_.style; }
  bool is_special(TokenId token) const override;
  std::optional<TokenId> special(std::string_view text) const override;
  int size() const override { return parts_.bytes.size(); }
  void pad_to(int vocab) override { padded_ = vocab; }
  std::optional<TokenId> bos() const override { return parts_.bos; }
  std::span<const TokenId> end_tokens() const override { return parts_.end_tokens; }

 private:
  void find_longest_token();
  void encode_text(Encoding& to, std::string_view text, const Ranges& user, bool at_start) const;
  void encode_normalized(Encoding& to, std::string_view text, const Ranges& user, bool at_start) const;

  TokenizerParts parts_;
  AddedTokenMatcher raw_;         // matched in the original text
  AddedTokenMatcher normalized_;  // matched in the normalized text
  AddedTokenMatcher controls_;    // all control tokens, for first_control()
  std::unordered_map<std::string, TokenId> by_text_;
  std::vector<bool> is_special_;
  int padded_ = 0;  // ids from size() to here are holes
  // Bytes that one token may stand for, of the original and of the normalized text; 0: any number.
  std::size_t max_token_bytes_ = 0, max_piece_ = 0;
};

Pipeline::Pipeline(TokenizerParts parts) : parts_(std::move(parts)) {
  is_special_.resize(static_cast<std::size_t>(size()));
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<AddedToken> controls;
  RegexScratch scratch;
  for (const AddedToken& token : parts_.added) {
    if (is_control(token)) controls.push_back({.id = token.id, .content = token.content});
    by_text_.emplace(token.content, token.id);
    if (token.special) is_special_[static_cast<std::size_t>(token.id)] = true;
    if (!token.normalized) {
      raw.push_back(token);
      continue;
    }
    AddedToken changed = token;
    changed.content = parts_.normalizer.apply(token.content, scratch);
    // Whether a token is markup depends on its original text, not on a prefix that the normalizer adds.
    changed.special = is_control(token);
    if (!changed.content.empty()) normalized.push_back(std::move(changed));
  }
  raw_ = AddedTokenMatcher(std::move(raw));
  normalized_ = AddedTokenMatcher(std::move(normalized));
  controls_ = AddedTokenMatcher(std::move(controls));
  find_longest_token();
}

void Pipeline::find_longest_token() {
  if (!parts_.model->keeps_every_byte()) return;
  std::size_t longest = 1;
  for (TokenId id = 0; id < size(); ++id) longest = std::max(longest, parts_.bytes.text(id).size());
  // A space, one byte of the text, may be three bytes of a piece (▁).
  max_piece_ = 3 * longest;
  const bool strips =
      std::ranges::any_of(parts_.added, [](const AddedToken& token) { return token.lstrip || token.rstrip; });
  if (!strips && !parts_.pre_tokenizer.drops_text()) {
    max_token_bytes_ = longest * parts_.normalizer.max_shrinkage();
  }
}

std::optional<TokenId> Pipeline::first_control(std::string_view text) const {
  return controls_.first(text);
}

std::optional<std::vector<TokenId>> Pipeline::encode_within(std::span<const TextSpan> spans,
                                                            std::size_t max_tokens) const {
  std::string joined;
  std::string_view text = spans.size() == 1 ? spans[0].text : std::string_view{};
  Ranges user;
  for (std::size_t at = 0; const TextSpan& span : spans) {
    if (spans.size() > 1) joined += span.text;
    const Range range{.begin = at, .end = at + span.text.size()};
    at = range.end;
    if (span.origin != Origin::user || span.text.empty()) continue;
    if (!user.empty() && user.back().end == range.begin) {
      user.back().end = range.end;
    } else {
      user.push_back(range);
    }
  }
  if (spans.size() > 1) text = joined;
  if (const auto bad = utf8::first_invalid(text)) {
    fail(ErrorKind::invalid_request, fmt::format("text: expected UTF-8, found byte 0x{:02X} at offset {}",
                                                 static_cast<unsigned char>(text[*bad]), *bad));
  }
  if (max_token_bytes_ > 0 && text.size() / max_token_bytes_ > max_tokens) return std::nullopt;
  Encoding encoding{.max_tokens = max_tokens, .max_piece = max_piece_};
  encoding.ids.reserve(std::min(text.size() / 3, max_tokens) + 8);
  for (const TextPart& part : raw_.split(text, user)) {
    if (encoding.is_full) break;
    if (part.token) {
      encoding.add(*part.token);
    } else {
      const Range range = part.range;
      encode_text(encoding, text.substr(range.begin, range.end - range.begin), inside(user, range),
                  range.begin == 0);
    }
  }
  if (encoding.is_full) return std::nullopt;
  return std::move(encoding.ids);
}

void Pipeline::encode_text(Encoding& to, std::string_view text, const Ranges& user, bool at_start) const {
  if (parts_.normalizer.changes_nothing()) return encode_normalized(to, text, user, at_start);
  const bool mixed = !user.empty() && (user.size() > 1 || user[0].begin > 0 || user[0].end < text.size());
  if (!mixed || !normalized_.has_control()) {
    const std::string changed = parts_.normalizer.apply(text, to.scratch);
    const Ranges all = user.empty() ? Ranges{} : Ranges{{.begin = 0, .end = changed.size()}};
    return encode_normalized(to, changed, all, at_start);
  }
  // Origins do not survive normalization, so the text is split where they change. The tokens at those offsets
  // may differ from the unsplit text's; this affects only vocabularies that match control tokens in
  // normalized text.
  std::size_t done = 0;
  const auto encode_range = [&](std::size_t begin, std::size_t end, bool from_user) {
    if (begin == end) return;
    const std::string_view part = text.substr(begin, end - begin);
    encode_text(to, part, from_user ? Ranges{{.begin = 0, .end = part.size()}} : Ranges{},
                at_start && begin == 0);
  };
  for (const Range& range : user) {
    encode_range(done, range.begin, false);
    encode_range(range.begin, range.end, true);
    done = range.end;
  }
  encode_range(done, text.size(), false);
}

void Pipeline::encode_normalized(Encoding& to, std::string_view text, const Ranges& user,
                                 bool at_start) const {
  ModelSink sink(*parts_.model, to);
  if (normalized_.empty())
    return parts_.pre_tokenizer.run({.text = text, .at_start = at_start}, to.scratch, sink);
  for (const TextPart& part : normalized_.split(text, user)) {
    if (to.is_full) return;
    if (part.token) {
      to.add(*part.token);
    } else {
      const auto [begin, end] = part.range;
      parts_.pre_tokenizer.run({.text = text.substr(begin, end - begin), .at_start = at_start && begin == 0},
                               to.scratch, sink);
    }
  }
}

std::vector<TokenId> Pipeline::add_special(std::vector<TokenId> ids) const {
  ids.insert(ids.begin(), parts_.prefix.begin(), parts_.prefix.end());
  ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return ids;
}

std::string_view Pipeline::bytes(TokenId token) const {
  if (token >= size() && token < padded_) return {};
  if (token < 0 || token >= size()) {
    fail(ErrorKind::invalid_request,
         fmt::format("token {}: the largest id of the vocabulary is {}", token, size() - 1));
  }
  return parts_.bytes.text(token);
}

bool Pipeline::is_special(TokenId token) const {
  return token >= 0 && token < size() && is_special_[static_cast<std::size_t>(token)];
}

std::optional<TokenId> Pipeline::special(std::string_view text) const {
  const auto found = by_text_.find(std::string(text));
  return found == by_text_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::unique_ptr<Tokenizer> assemble(TokenizerParts parts) {
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace inferno
