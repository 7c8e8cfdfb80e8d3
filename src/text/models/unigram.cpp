#include "text/models/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr double unknown_penalty = 10.0;  // below the lowest score, as in sentencepiece

}  // namespace

// The best path to an offset in the text.
struct Unigram::Step {
  double score = 0;
  std::size_t from = 0;
  TokenId token = -1;  // -1 for an unknown character
  bool reached = false;

  void offer(double candidate, std::size_t begin, TokenId id) {
    if (reached && candidate <= score) return;
    *this = {.score = candidate, .from = begin, .token = id, .reached = true};
  }
};

Unigram::Unigram(std::span<const UnigramPiece> pieces, std::optional<TokenId> unknown, bool byte_fallback)
    : unknown_(unknown), byte_fallback_(byte_fallback) {
  double lowest = std::numeric_limits<double>::max();
  fallback_.fill(-1);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const UnigramPiece& piece = pieces[i];
    scores_.push_back(piece.score);
    lowest = std::min(lowest, piece.score);
    if (piece.usable && !piece.text.empty()) trie_.add(piece.text, static_cast<std::int32_t>(i));
    for (std::size_t byte = 0; byte_fallback && piece.text.size() == 6 && byte < 256; ++byte) {
      if (piece.text == fmt::format("<0x{:02X}>", byte)) fallback_[byte] = static_cast<TokenId>(i);
    }
  }
  unknown_score_ = lowest - unknown_penalty;
}

std::vector<Unigram::Step> Unigram::best_path(std::string_view text) const {
  std::vector<Step> best(text.size() + 1);
  best[0].reached = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t character = utf8::length_from_first_byte(text[at]);
    bool single = false;
    ByteTrie::Node node = ByteTrie::root;
    for (std::size_t end = at; end < text.size();) {
      node = trie_.step(node, text[end++]);
      if (node == ByteTrie::nowhere) break;
      const TokenId id = trie_.value(node);
      if (id < 0) continue;
      best[end].offer(best[at].score + scores_[static_cast<std::size_t>(id)], at, id);
      single = single || end - at == character;
    }
    if (!single) best[at + character].offer(best[at].score + unknown_score_, at, -1);
    at += character;
  }
  return best;
}

bool Unigram::keeps_every_byte() const {
  return byte_fallback_ && std::ranges::all_of(fallback_, [](TokenId token) { return token >= 0; });
}

void Unigram::encode(std::vector<TokenId>& out, std::string_view piece, std::size_t /*max_tokens*/) const {
  const std::vector<Step> best = best_path(piece);
  std::vector<std::size_t> ends;
  for (std::size_t at = piece.size(); at > 0; at = best[at].from) ends.push_back(at);
  std::ranges::reverse(ends);
  // Neighbouring unknown characters are one unknown token.
  std::size_t unknown_from = 0;
  bool in_unknown = false;
  for (const std::size_t end : ends) {
    const Step& step = best[end];
    if (step.token < 0 || step.token == unknown_) {
      if (!in_unknown) unknown_from = step.from;
      in_unknown = true;
      continue;
    }
    if (in_unknown) append_unknown(out, piece.substr(unknown_from, step.from - unknown_from));
    in_unknown = false;
    out.push_back(step.token);
  }
  if (in_unknown) append_unknown(out, piece.substr(unknown_from));
}

void Unigram::append_unknown(std::vector<TokenId>& out, std::string_view text) const {
  if (const TokenId spelled_out = trie_.find(text); spelled_out >= 0) return out.push_back(spelled_out);
  const bool as_bytes = byte_fallback_ && std::ranges::all_of(text, [this](char c) {
                          return fallback_[static_cast<unsigned char>(c)] >= 0;
                        });
  if (as_bytes) {
    for (const char c : text) out.push_back(fallback_[static_cast<unsigned char>(c)]);
  } else if (unknown_) {
    out.push_back(*unknown_);
  } else {
    fail(ErrorKind::corrupt,
         fmt::format("vocabulary: no piece for {}, no unknown token and no byte pieces", quote(text)));
  }
}

}  // namespace inferno
